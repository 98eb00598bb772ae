//! Shards that are distributed over the members of a group: `cargo run --example partitioner`.

use docent::Client;
use docent::locks::Partitioner;
use docent::server::Server;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start().await?;
    let client = Client::connect(server.connect_string()).await?;
    let shards = ["s1", "s2", "s3", "s4"];

    let one = Partitioner::builder(&client, "/shards", shards).identity("one").join()?;
    let share = one.acquire().await?;
    println!("only member: {:?}", share.items());
    let two = Partitioner::builder(&client, "/shards", shards).identity("two").join()?;
    // The other member waits for its shards until this share is released.
    if let Some(reason) = share.changed().await {
        println!("giving up the share: {reason}");
    }
    share.release().await?;
    let (one, two) = (one.acquire().await?, two.acquire().await?);
    println!("one: {:?}, two: {:?}", one.items(), two.items());

    client.close().await;
    Ok(())
}
