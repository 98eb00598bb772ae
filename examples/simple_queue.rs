//! A queue of bytes without acknowledgements: `cargo run --example simple_queue`.

use docent::server::Server;
use docent::{Client, SimpleQueue};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start().await?;
    let client = Client::connect(server.connect_string()).await?;
    let letters = SimpleQueue::new(&client, "/queues/letters")?;

    letters.put("first").await?;
    letters.put("second").await?;
    println!("took {:?}, then {:?}", letters.take().await?, letters.take().await?);
    assert!(letters.is_empty().await?);
    println!("the queue is empty");

    client.close().await;
    Ok(())
}
