//! A queue, which hands each item to one consumer at a time: `cargo run --example queue`.

use docent::server::Server;
use docent::{Client, Queue};
use tokio::sync::Notify;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start().await?;
    let client = Client::connect(server.connect_string()).await?;
    let jobs = Queue::<String>::new(&client, "/queues/jobs")?;

    jobs.put(&"resize a picture".to_owned()).await?;
    println!("{} job in the queue", jobs.len().await?);
    let done = Notify::new();
    // The job is acknowledged if the work returns `Ok`, and repeated if it returns an error.
    let work = async |job: &String| {
        println!("working on: {job}");
        done.notify_one();
        Ok::<_, std::io::Error>(())
    };
    jobs.consume(work).until(done.notified()).await?;
    println!("{} jobs left", jobs.len().await?);

    client.close().await;
    Ok(())
}
