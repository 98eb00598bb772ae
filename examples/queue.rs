//! A queue, which hands each item to one consumer at a time: `cargo run --example queue`.

use docent::server::Server;
use docent::{Client, Queue};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start().await?;
    let client = Client::connect(server.connect_string()).await?;
    let jobs = Queue::<String>::new(&client, "/queues/jobs")?;

    jobs.put(&"resize a picture".to_owned()).await?;
    println!("{} job waits", jobs.len().await?);
    let delivery = jobs.take().await?;
    // The work stops as soon as the job may be somebody else's.
    delivery.run(async { println!("does: {}", delivery.item()) }).await?;
    delivery.ack().await?;
    println!("{} jobs are left", jobs.len().await?);

    client.close().await;
    Ok(())
}
