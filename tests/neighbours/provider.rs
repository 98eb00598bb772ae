//! A provider of Dubbo's that Docent registers, in a separate process: `provider CONNECT-STRING NAMESPACE
//! TIMEOUT-MS TICK-MS NUMBER PROTOCOL`.
//!
//! It answers gRPC health checks with its number in place of the status. Once it is registered, it carries
//! out the orders that `peer.rs` of `docent-battery` describes: `disable` and `deregister`.

use docent::discovery::RegistryLayout;
use docent::{Instance, Registry};
use docent_tests::contenders;
use std::collections::BTreeMap;
use std::error::Error;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tonic::codegen::{BoxStream, tokio_stream};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

const SERVICE: &str = "grpc.health.v1.Health";

struct Provider {
    number: i32,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (client, [number, protocol]) = contenders::in_process().await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let server = Server::builder().add_service(HealthServer::new(Provider { number: number.parse()? }));
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    let parameters = BTreeMap::from([("protocol", protocol.as_str()), ("version", "1.0.0")]);
    let me = Instance::new(SERVICE, "127.0.0.1", port).id(number).payload(parameters);
    let registry = Registry::builder(&client, "/dubbo").layout(RegistryLayout::Dubbo).build()?;
    let mut registration = Some(registry.register(me).await?);
    println!("ready");
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let words: Vec<_> = line.split(' ').collect();
        let [order, _, verb, ..] = words[..] else { return Err(format!("no order: {line:?}").into()) };
        match (verb, registration.take()) {
            ("make", kept) => registration = kept,
            ("disable", Some(kept)) => {
                kept.set_enabled(false).await?;
                registration = Some(kept);
            }
            ("deregister", Some(kept)) => drop(kept.deregister().await?),
            _ => return Err(format!("cannot carry out {line:?}").into()),
        }
        println!("{order} ok");
    }
    Ok(())
}

#[tonic::async_trait]
impl Health for Provider {
    type WatchStream = BoxStream<HealthCheckResponse>;

    async fn check(&self, _: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        Ok(Response::new(HealthCheckResponse { status: self.number }))
    }

    async fn watch(&self, _: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        Ok(Response::new(Box::pin(tokio_stream::pending())))
    }
}
