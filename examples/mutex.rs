//! A lock with one holder at a time: `cargo run --example mutex`.

use docent::server::Server;
use docent::{Client, Mutex};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start().await?;
    let client = Client::connect(server.connect_string()).await?;
    let mutex = Mutex::new(&client, "/locks/report")?;

    let guard = mutex.acquire().await?;
    println!("acquired the lock, fence {}", guard.fence());
    // The work stops as soon as the lock is lost.
    guard.run(async { println!("writing the report") }).await?;
    assert!(mutex.try_acquire().await.is_err());
    println!("no other client can acquire the lock");
    guard.release().await?;
    println!("released the lock");

    client.close().await;
    Ok(())
}
