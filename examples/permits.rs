//! A semaphore, which limits the number of holders: `cargo run --example permits`.

use docent::server::Server;
use docent::{Client, Semaphore};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start().await?;
    let client = Client::connect(server.connect_string()).await?;
    let exports = Semaphore::new(&client, "/limits/exports", 3)?;

    let one = exports.acquire().await?;
    let two = exports.acquire_many(2).await?;
    println!("{} of 3 permits are taken", one.permits() + two.permits());
    assert!(exports.try_acquire().await.is_err());
    println!("no fourth permit is available");
    one.release().await?;
    exports.acquire().await?.release().await?;
    println!("a released permit can be acquired again");

    client.close().await;
    Ok(())
}
