//! A barrier that members pass together, in and out: `cargo run --example double_barrier`.

use docent::server::Server;
use docent::{Client, DoubleBarrier};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start().await?;
    let client = Client::connect(server.connect_string()).await?;
    let round = DoubleBarrier::new(&client, "/barriers/round", 2)?;

    let (one, other) = tokio::try_join!(round.enter(), round.enter())?;
    println!("both are in");
    tokio::try_join!(one.leave(), other.leave())?;
    println!("both are out");

    client.close().await;
    Ok(())
}
