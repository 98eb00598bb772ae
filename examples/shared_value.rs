//! A value that many processes read and write: `cargo run --example shared_value`.

use docent::server::Server;
use docent::{Client, SharedValue};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start().await?;
    let client = Client::connect(server.connect_string()).await?;
    let motto = SharedValue::new(&client, "/motto", "festina lente")?;

    let seen = motto.get().await?;
    println!("the motto is {:?}", seen.value());
    motto.compare_and_set(&seen, "carpe diem").await?;
    assert!(motto.compare_and_set(&seen, "memento mori").await.is_err());
    println!("a change based on an outdated motto was rejected");

    client.close().await;
    Ok(())
}
