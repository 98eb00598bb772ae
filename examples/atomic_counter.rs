//! A counter that many processes increment: `cargo run --example atomic_counter`.

use docent::server::Server;
use docent::{Client, Counter};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start().await?;
    let client = Client::connect(server.connect_string()).await?;
    let orders = Counter::<i64>::new(&client, "/counters/orders")?;

    println!("order {}", orders.increment().await?.after);
    let block = orders.add(1_000).await?;
    println!("reserved orders {} to {}", block.before + 1, block.after);

    client.close().await;
    Ok(())
}
