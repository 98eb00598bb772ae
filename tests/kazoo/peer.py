"""A kazoo client that carries out orders: `python peer.py CONNECT-STRING SESSION-TIMEOUT-MS`.

When it is connected, the process carries out the orders that `orders.py` describes. The verb `make KIND ARGUMENTS`
creates a thing.
"""

import functools
import pathlib
import sys
import threading
import types

from kazoo.client import KazooClient

sys.path.append(str(pathlib.Path(__file__).parents[1]))
from orders import serve


def lock_of(kind):
    """Creates a lock from its path, its identifier, and the name patterns of further contenders to wait for."""

    def make(client, path, identifier, *patterns):
        lock = getattr(client, kind)(path, identifier, extra_lock_patterns=patterns)
        return {
            "acquire": lock.acquire,
            "try": lambda: lock.acquire(blocking=False),
            "release": lock.release,
            "contenders": lock.contenders,
        }

    return make


def election(client, path, identifier, *patterns):
    """Creates an election. Kazoo's election accepts no name patterns, so its lock is replaced by one with patterns."""
    candidate = client.Election(path, identifier)
    candidate.lock = client.Lock(path, identifier, extra_lock_patterns=patterns)
    leads, resigned = threading.Event(), threading.Event()

    def work():
        leads.set()
        resigned.wait()

    def resign():
        resigned.set()
        running.join()

    running = threading.Thread(target=candidate.run, args=[work], daemon=True)
    return {
        "stand": running.start,
        "lead": leads.wait,
        "leads": leads.is_set,
        "resign": resign,
        "contenders": candidate.contenders,
    }


def barrier(client, path):
    recipe = client.Barrier(path)
    return {"set": recipe.create, "remove": recipe.remove, "wait": recipe.wait}


def double_barrier(client, path, members, identifier):
    recipe = client.DoubleBarrier(path, int(members), identifier)

    def enter():
        # `enter` does not raise errors.
        recipe.enter()
        return recipe.participating

    return {"enter": enter, "leave": recipe.leave}


def counter(client, path, *options):
    """Creates a counter, in Curator's layout with the option `curator`, otherwise in kazoo's layout."""
    recipe = client.Counter(path, support_curator="curator" in options)

    def add(number):
        recipe.__add__(int(number))
        return recipe.post_value

    def add_each(number, times):
        for _ in range(int(times)):
            add(number)

    return {"get": lambda: recipe.value, "add": add, "add-each": add_each}


def party_of(kind):
    def make(client, path, identifier):
        party = getattr(client, kind)(path, identifier)
        return {"join": party.join, "leave": party.leave, "members": lambda: sorted(party), "count": lambda: len(party)}

    return make


def semaphore(client, path, leases):
    recipe = client.Semaphore(path, max_leases=int(leases))
    attempt = functools.partial(recipe.acquire, blocking=False)
    return {"try": attempt, "acquire": recipe.acquire, "release": recipe.release}


def dubbo_consumer(client, interface):
    """Creates a consumer of dubbo-python for an interface, with a session of its own."""
    # Another registry and a debugging console, whose modules need packages that are not installed.
    for name, member in ("dubbo.nacos", "NacosClient"), ("dubbo.telnet", "Telnet"):
        module = sys.modules.setdefault(name, types.ModuleType(name))
        setattr(module, member, None)
    from dubbo.client import ZkRegister

    servers = ",".join(f"{host}:{port}" for host, port in client.hosts)
    register = ZkRegister(servers + client.chroot)

    def weight_of(host):
        """Returns the weight by which the consumer chooses a host."""
        return int(register.weights.get(interface, {}).get(host, 100))

    return {
        "host": lambda: register.get_provider_host(interface),
        "hosts": lambda: sorted(register.hosts[interface]),
        "weights": lambda: [f"{host}={weight_of(host)}" for host in sorted(register.hosts[interface])],
    }


def text_tree(client, root):
    """Creates a tree of texts as configuration for Spring Cloud is written: UTF-8, with a node for each segment."""

    def write(key, text):
        path = f"{root}/{key}"
        client.ensure_path(path)
        client.set(path, text.encode())

    return {
        "write": write,
        "read": lambda key: [client.get(f"{root}/{key}")[0].decode()],
        "delete": lambda key: client.delete(f"{root}/{key}", recursive=True),
    }


def session(client):
    return {"id": lambda: client.client_id[0]}


KINDS = {
    "lock": lock_of("Lock"),
    "read-lock": lock_of("ReadLock"),
    "write-lock": lock_of("WriteLock"),
    "election": election,
    "barrier": barrier,
    "double-barrier": double_barrier,
    "counter": counter,
    "party": party_of("Party"),
    "shallow-party": party_of("ShallowParty"),
    "semaphore": semaphore,
    "dubbo-consumer": dubbo_consumer,
    "session": session,
    "text-tree": text_tree,
}


def main(connect_string, session_timeout):
    timeout = int(session_timeout) / 1000
    # By default the pause between attempts to connect doubles up to an hour, and a session can expire during it.
    retry = {"max_tries": -1, "max_delay": timeout / 8}
    client = KazooClient(hosts=connect_string, timeout=timeout, connection_retry=retry)
    client.start(timeout=30)
    serve(lambda kind, *arguments: KINDS[kind](client, *arguments))


main(*sys.argv[1:])
