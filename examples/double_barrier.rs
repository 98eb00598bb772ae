//! A barrier that members enter and leave together: `cargo run --example double_barrier`.

use docent::server::Server;
use docent::{Client, DoubleBarrier};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start().await?;
    let client = Client::connect(server.connect_string()).await?;
    let round = DoubleBarrier::new(&client, "/barriers/round", 2)?;

    let (one, other) = tokio::try_join!(round.enter(), round.enter())?;
    println!("both members have entered");
    tokio::try_join!(one.leave(), other.leave())?;
    println!("both members have left");

    client.close().await;
    Ok(())
}
