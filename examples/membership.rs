//! A group whose members know each other: `cargo run --example membership`.

use docent::server::Server;
use docent::{Client, Membership};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start().await?;
    let client = Client::connect(server.connect_string()).await?;
    let cluster = Membership::new(&client, "/cluster/web")?;

    let me = cluster.join("host-7", "10.0.0.7:8080").await?;
    let members = cluster.members().await?;
    for peer in members.current() {
        println!("{} is a member, at {:?}", peer.id, peer.data);
    }
    me.leave().await?;
    println!("left the group");

    client.close().await;
    Ok(())
}
