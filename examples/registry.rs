//! A registry, in which services find each other: `cargo run --example registry`.

use docent::server::Server;
use docent::{Client, Instance, Registry, Service};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start().await?;
    let client = Client::connect(server.connect_string()).await?;
    let registry = Registry::new(&client, "/services")?;

    let orders = Instance::new("orders", "10.0.0.7", 8080).id("host-7").payload("zone a");
    let registration = registry.register(orders).await?;
    println!("registered an instance of orders");

    let service: Service<String> = registry.typed_service("orders").await?;
    let picked = service.pick()?;
    println!("picked {} at {}", picked.id, picked.uri()?);
    picked.succeeded();

    registration.deregister().await?;
    client.close().await;
    Ok(())
}
