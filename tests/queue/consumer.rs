//! Takes an item in a process of its own, to be frozen: `consumer CONNECT-STRING NAMESPACE TIMEOUT-MS TICK-MS QUEUE`. It puts the item
//! there if there is none.
//!
//! Prints `held` once it has one; then, for each line it reads, what its delivery says: `held` or `lost`.

use docent::{Client, Queue};
use std::error::Error;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [connect_string, namespace, timeout, tick, queue] = &arguments[..] else {
        return Err("five arguments are needed: see the source".into());
    };
    let millis = |text: &str| text.parse().map(Duration::from_millis);
    let client = Client::builder(connect_string)
        .namespace(namespace)
        .session_timeout(millis(timeout)?)
        .server_tick(millis(tick)?)
        .connect()
        .await?;
    let queue: Queue<u64> = Queue::new(&client, queue)?;
    if queue.is_empty().await? {
        queue.put(&7).await?;
    }
    let delivery = queue.take().await?;
    println!("held");
    let mut questions = BufReader::new(tokio::io::stdin()).lines();
    while questions.next_line().await?.is_some() {
        println!("{}", if delivery.is_held() { "held" } else { "lost" });
    }
    Ok(())
}
