//! Several locks together, all or none: `cargo run --example multi_lock`.

use docent::locks::AnyLock;
use docent::server::Server;
use docent::{Client, MultiLock, Mutex, RwLock};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start().await?;
    let client = Client::connect(server.connect_string()).await?;
    let (stock, prices) = (Mutex::new(&client, "/locks/stock")?, RwLock::new(&client, "/locks/prices")?);

    let both = MultiLock::new([AnyLock::from(&stock), prices.reading()])?.acquire().await?;
    println!("holding the stock lock and reading the prices");
    assert!(stock.try_acquire().await.is_err());
    println!("no other client can acquire the stock lock");
    both.release().await?;
    println!("released both locks");

    client.close().await;
    Ok(())
}
