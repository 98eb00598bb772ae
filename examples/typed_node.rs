//! Values of one type at the paths of a template: `cargo run --example typed_node`.

use docent::Client;
use docent::config::NodeModel;
use docent::server::Server;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    lines: u32,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start().await?;
    let client = Client::connect(server.connect_string()).await?;
    let orders = NodeModel::<Order>::new(&client, "/shops/{shop}/orders/{id}")?;

    let order = orders.node(&[("shop", "eu"), ("id", "17")])?;
    order.create(&Order { lines: 1 }).await?;
    let changed = order.update(|now| Some(Order { lines: now?.lines + 1 })).await?;
    println!("{} has {} lines", order.path(), changed.map_or(0, |order| order.lines));
    client.set(order.path(), "no order", None).await?;
    println!("{}", order.get().await.err().map_or_else(String::new, |error| error.to_string()));

    client.close().await;
    Ok(())
}
