//! A barrier, which blocks all processes that wait at it: `cargo run --example barrier`.

use docent::server::Server;
use docent::{Barrier, Client};
use std::time::Duration;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start().await?;
    let client = Client::connect(server.connect_string()).await?;
    let maintenance = Barrier::new(&client, "/barriers/maintenance")?;

    maintenance.set().await?;
    println!("the barrier is set");
    assert!(maintenance.wait_timeout(Duration::from_millis(100)).await.is_err());
    println!("no process passes the barrier");
    maintenance.remove().await?;
    maintenance.wait().await?;
    println!("all processes pass after the barrier is removed");

    client.close().await;
    Ok(())
}
