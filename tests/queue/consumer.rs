//! Takes an item in a separate process that tests freeze: `consumer CONNECT-STRING NAMESPACE TIMEOUT-MS
//! TICK-MS QUEUE`. Puts the item if the queue has none.
//!
//! Prints `held` once it has an item. Then prints, for each line it reads, what its delivery reports: `held`
//! or `lost`.

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
