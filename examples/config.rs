//! Configuration that is published, and followed by a subscriber: `cargo run --example config`.

use docent::config::Change;
use docent::server::Server;
use docent::{Client, Config};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start().await?;
    let client = Client::connect(server.connect_string()).await?;
    let limit = Config::<u32>::new(&client, "/config/limit")?;

    limit.publish(&100).await?;
    let mut subscription = limit.subscribe().await?;
    println!("the limit is {}", subscription.current().value());
    limit.publish(&200).await?;
    while let Some(change) = subscription.changed().await {
        let Change::Value(limit) = change? else { continue };
        println!("the limit changed to {}", limit.value());
        break;
    }

    client.close().await;
    Ok(())
}
