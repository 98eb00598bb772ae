//! Takes an item in a process of its own, to be frozen:
//! `consumer CONNECT-STRING NAMESPACE TIMEOUT-MS TICK-MS QUEUE`. It puts the item there if there is none.
//!
//! Prints `held` once it has one; then, for each line it reads, what its delivery says: `held` or `lost`.

use docent::Queue;
use docent_tests::contenders;
use std::error::Error;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (client, [queue]) = contenders::in_process().await?;
    let queue: Queue<u64> = Queue::new(&client, &queue)?;
    if queue.is_empty().await? {
        queue.put(&7).await?;
    }
    let delivery = queue.take().await?;
    Ok(contenders::answer(|| delivery.is_held()).await?)
}
