//! A whole tree cached in memory: `cargo run --example tree_cache`.

use docent::cache::{TreeCache, TreeEvent};
use docent::server::Server;
use docent::{Client, CreateMode};
use futures_util::StreamExt;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start().await?;
    let client = Client::connect(server.connect_string()).await?;
    client.create("/shop/eu/limits", "100", CreateMode::Persistent).await?;
    client.create_or_set("/shop/us/limits", "200", CreateMode::Persistent).await?;
    let shop = TreeCache::new(&client, "/shop")?;
    let mut events = shop.changes();
    while let Some(event) = events.next().await.transpose()? {
        match event {
            TreeEvent::Added(path, node) => println!("{path} has {:?}", node.data),
            TreeEvent::Updated(path, node) => println!("{path} changed to {:?}", node.data),
            TreeEvent::Ready => break,
            _ => {}
        }
    }
    for (path, _) in shop.current().children("/shop") {
        println!("cached: {path}");
    }
    println!("{} nodes deleted", client.delete_all("/shop").await?);
    client.close().await;
    Ok(())
}
