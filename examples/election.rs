//! An election, in which one candidate leads at a time: `cargo run --example election`.

use docent::server::Server;
use docent::{Client, Election};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start().await?;
    let client = Client::connect(server.connect_string()).await?;
    let election = Election::builder(&client, "/election/scheduler").id("host-7").build()?;

    let leadership = election.campaign().await?;
    println!("elected as leader, fence {}", leadership.fence());
    if let Some(leader) = election.leader().await? {
        println!("the leader is {}", leader.id);
    }
    // The work stops as soon as the leadership is lost.
    leadership.run(async { println!("scheduling") }).await?;
    leadership.resign().await?;
    println!("resigned");

    client.close().await;
    Ok(())
}
