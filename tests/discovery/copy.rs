//! One copy of the service `orders` in a separate process, which tests kill, stop or slow down: `copy
//! CONNECT-STRING NAMESPACE TIMEOUT-MS TICK-MS ID KIND DELAY-MS`.
//!
//! The copy answers with its id after a delay: to HTTP requests, or to gRPC health checks. It prints `ready`
//! when it is registered. At the first line of its input it drains, prints `drained`, and exits.

use docent::{Instance, Registry};
use docent_tests::contenders;
use std::error::Error;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use tonic::codegen::{BoxStream, tokio_stream};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

/// Long enough for requests sent by clients that have not learned of the drain yet.
const DRAIN: Duration = Duration::from_secs(2);

#[derive(Clone)]
struct Orders {
    id: String,
    delay: Duration,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (client, [id, kind, delay]) = contenders::in_process().await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let orders = Orders { id: id.clone(), delay: Duration::from_millis(delay.parse()?) };
    match kind.as_str() {
        "http" => drop(tokio::spawn(serve_http(listener, orders))),
        "grpc" => drop(tokio::spawn(serve_grpc(listener, orders))),
        kind => return Err(format!("unknown kind {kind:?}").into()),
    }
    let me = Instance::new("orders", "127.0.0.1", port).id(&id).payload(id.clone());
    let registration = Registry::new(&client, "/services")?.register(me).await?;
    println!("ready");
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    if lines.next_line().await?.is_some() {
        registration.drain(DRAIN).await?;
        println!("drained");
    }
    Ok(())
}

async fn serve_http(listener: TcpListener, orders: Orders) {
    while let Ok((link, _)) = listener.accept().await {
        tokio::spawn(answer(link, orders.clone()));
    }
}

/// Answers requests without a body, one after the other.
async fn answer(link: TcpStream, orders: Orders) -> std::io::Result<()> {
    let Orders { id, delay } = orders;
    let (input, mut output) = link.into_split();
    let mut lines = BufReader::new(input).lines();
    while let Some(line) = lines.next_line().await? {
        if line.is_empty() {
            sleep(delay).await;
            let response = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{id}", id.len());
            output.write_all(response.as_bytes()).await?;
        }
    }
    Ok(())
}

async fn serve_grpc(listener: TcpListener, orders: Orders) {
    let server = Server::builder().add_service(HealthServer::new(orders));
    let _ = server.serve_with_incoming(TcpIncoming::from(listener)).await;
}

#[tonic::async_trait]
impl Health for Orders {
    type WatchStream = BoxStream<HealthCheckResponse>;

    async fn check(&self, _: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        sleep(self.delay).await;
        let mut response = Response::new(HealthCheckResponse { status: 1 });
        let id = self.id.parse().map_err(|_| Status::internal("the id is not a valid header value"))?;
        response.metadata_mut().insert("id", id);
        Ok(response)
    }

    async fn watch(&self, _: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        Ok(Response::new(Box::pin(tokio_stream::pending())))
    }
}
