"""Callers and providers of Apache's Dubbo SDK that carry out orders: `python triple.py SERVERS ROOT`.

The SDK's registry is the node `dubbo` below the root. The process carries out the orders that `orders.py` describes.
The verb `make KIND ARGUMENTS` creates a thing.
"""

import concurrent.futures
import logging
import pathlib
import sys

# No test reads the log.
logging.disable()

import dubbo
from dubbo.configs import ReferenceConfig, RegistryConfig, ServiceConfig
from dubbo.proxy.handlers import RpcMethodHandler, RpcServiceHandler

sys.path.append(str(pathlib.Path(__file__).parents[1]))
from orders import serve

SERVICE = "grpc.health.v1.Health"

# A call whose connection is closed meanwhile never ends.
PATIENCE = 5


def encode_request(name):
    """Encodes a `HealthCheckRequest`."""
    return b"\x0a" + bytes([len(name)]) + name.encode()


def decode_request(data):
    return data[2:].decode()


def encode_response(number):
    """Encodes a `HealthCheckResponse`, with a number below 128 in place of the status."""
    return bytes([0x08, number])


def decode_response(data):
    return data[1]


def caller(sdk):
    client = sdk.create_client(ReferenceConfig(protocol="tri", service=SERVICE))
    check = client.unary("Check", request_serializer=encode_request, response_deserializer=decode_response)
    calls = concurrent.futures.ThreadPoolExecutor(max_workers=100)

    def call():
        """Returns the number of the provider that answered, or what failed."""
        try:
            return [calls.submit(check, "orders").result(timeout=PATIENCE)]
        except Exception as error:
            return ["failed", repr(error)]

    return {"call": call}


def provider(sdk, number, port):
    def check(name):
        return int(number) if name == "orders" else 0

    method = RpcMethodHandler.unary(
        check, method_name="Check", request_deserializer=decode_request, response_serializer=encode_response
    )
    service = ServiceConfig(RpcServiceHandler(SERVICE, [method]), host="127.0.0.1", port=int(port))
    sdk.create_server(service).start()

    def deregister():
        """Removes the provider from the registry. The SDK has no method for the whole provider."""
        from dubbo.registry.zookeeper.zk_registry import ZookeeperRegistryFactory

        ZookeeperRegistryFactory().get_registry(sdk.registry_config.to_url()).unregister(service.to_url())

    return {"deregister": deregister}


KINDS = {"caller": caller, "provider": provider}


def main(servers, root):
    host, _, port = servers.rpartition(":")
    sdk = dubbo.Dubbo(registry_config=RegistryConfig("zookeeper", host, int(port), group=f"{root}/dubbo"))
    serve(lambda kind, *arguments: KINDS[kind](sdk, *arguments))


main(*sys.argv[1:])
