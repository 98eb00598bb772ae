//! A lock that one holds at a time: `cargo run --example mutex`.

use docent::server::Server;
use docent::{Client, Mutex};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start().await?;
    let client = Client::connect(server.connect_string()).await?;
    let mutex = Mutex::new(&client, "/locks/report")?;

    let guard = mutex.acquire().await?;
    println!("holds, fence {}", guard.fence());
    // The work stops as soon as the lock is lost.
    guard.run(async { println!("writes the report") }).await?;
    assert!(mutex.try_acquire().await.is_err());
    println!("nobody else gets it meanwhile");
    guard.release().await?;
    println!("released");

    client.close().await;
    Ok(())
}
