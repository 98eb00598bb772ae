//! A lock with many readers or one writer: `cargo run --example rw_lock`.

use docent::server::Server;
use docent::{Client, RwLock};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start().await?;
    let client = Client::connect(server.connect_string()).await?;
    let catalogue = RwLock::new(&client, "/locks/catalogue")?;

    let writer = catalogue.write().await?;
    println!("acquired the write lock, fence {}", writer.fence());
    // No other writer can take the lock in between.
    let reader = writer.downgrade().await?;
    let other = catalogue.read().await?;
    println!("two clients read");
    assert!(catalogue.try_write().await.is_err());
    println!("no client can write meanwhile");
    reader.release().await?;
    other.release().await?;

    client.close().await;
    Ok(())
}
