//! A queue, which hands each item to one consumer at a time: `cargo run --example queue`.

use docent::server::Server;
use docent::{Client, Queue};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start().await?;
    let client = Client::connect(server.connect_string()).await?;
    let jobs = Queue::<String>::new(&client, "/queues/jobs")?;

    jobs.put(&"resize a picture".to_owned()).await?;
    println!("{} job in the queue", jobs.len().await?);
    let delivery = jobs.take().await?;
    // The work stops as soon as another consumer may have the job.
    delivery.run(async { println!("working on: {}", delivery.item()) }).await?;
    delivery.ack().await?;
    println!("{} jobs left", jobs.len().await?);

    client.close().await;
    Ok(())
}
