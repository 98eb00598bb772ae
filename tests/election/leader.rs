//! Leads an election in a process of its own, to be frozen: `leader CONNECT-STRING NAMESPACE TIMEOUT-MS TICK-MS ELECTION`.
//!
//! Prints `held` once it leads; then, for each line it reads, what its leadership says: `held` or `lost`.

use docent::{Client, Election};
use std::error::Error;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [connect_string, namespace, timeout, tick, election] = &arguments[..] else {
        return Err("five arguments are needed: see the source".into());
    };
    let millis = |text: &str| text.parse().map(Duration::from_millis);
    let client = Client::builder(connect_string)
        .namespace(namespace)
        .session_timeout(millis(timeout)?)
        .server_tick(millis(tick)?)
        .connect()
        .await?;
    let leadership = Election::new(&client, election)?.campaign().await?;
    println!("held");
    let mut questions = BufReader::new(tokio::io::stdin()).lines();
    while questions.next_line().await?.is_some() {
        println!("{}", if leadership.is_held() { "held" } else { "lost" });
    }
    Ok(())
}
