use super::crowd::{Crowd, Done};
use super::worker::{client, clients, close};
use crate::recipes::order::{Answer, Order};
use anyhow::Result;
use docent::{Client, Delivery, Queue, SimpleQueue};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::sync::Arc;
use tokio::sync::Semaphore;

pub(super) const ITEM: &str = "an item of a queue, of some forty bytes";
/// Most items that were put and are not taken, beside the backlog.
pub(super) const ROOM: usize = 100;
/// Puts on the way while the backlog is made.
const IN_FLIGHT: usize = 256;

/// `producers` put items and `consumers` take and acknowledge them, each in a session of its own: one by one,
/// or in batches of `batch`. A `backlog` stands all the time.
pub(super) async fn queue(order: &Order) -> Result<Answer> {
    let (batch, room) = (order.count("batch").max(1), Arc::new(Semaphore::new(ROOM)));
    let producers = clients(order, order.count("producers")).await?;
    let consumers = clients(order, order.count("consumers")).await?;
    let mut crowd = Crowd::default();
    fill(&producers[0], order).await?;
    for client in &producers {
        crowd.spawn(put(opened(client, order)?, batch, Arc::clone(&room)));
    }
    for client in &consumers {
        crowd.spawn(take(opened(client, order)?, batch, Arc::clone(&room), crowd.done()));
    }
    let answer = crowd.measure(order).await?;
    close(producers).await;
    close(consumers).await;
    Ok(answer)
}

fn opened(client: &Client, order: &Order) -> Result<Queue<String>> {
    Ok(Queue::builder(client, &order.path).unbounded().build()?)
}

async fn fill(client: &Client, order: &Order) -> Result<()> {
    let queue = opened(client, order)?;
    let items = vec![ITEM.to_owned(); order.count("backlog")];
    for items in items.chunks(IN_FLIGHT) {
        queue.put_all(items).await?;
    }
    Ok(())
}

async fn put(queue: Queue<String>, batch: usize, room: Arc<Semaphore>) -> Result<()> {
    let items = vec![ITEM.to_owned(); batch];
    loop {
        room.acquire_many(u32::try_from(batch)?).await?.forget();
        match &items[..] {
            [item] => queue.put(item).await?,
            items => queue.put_all(items).await?,
        }
    }
}

async fn take(queue: Queue<String>, batch: usize, room: Arc<Semaphore>, done: Done) -> Result<()> {
    loop {
        let taken = if batch == 1 {
            queue.take().await?.ack().await?;
            1
        } else {
            let deliveries = queue.take_batch(batch).await?;
            let taken = deliveries.len();
            Delivery::ack_all(deliveries).await?;
            taken
        };
        done.add(taken);
        room.add_permits(taken);
    }
}

/// One session puts items and another takes them, in front of a `backlog` that stays as it is.
pub(super) async fn simple(order: &Order) -> Result<Answer> {
    let (producer, consumer) = (client(order).await?, client(order).await?);
    let queue = SimpleQueue::new(&producer, &order.path)?;
    let puts = stream::iter(0..order.count("backlog")).map(|_| queue.put(ITEM)).buffer_unordered(IN_FLIGHT);
    puts.try_for_each(|_| std::future::ready(Ok(()))).await?;

    let (mut crowd, room) = (Crowd::default(), Arc::new(Semaphore::new(ROOM)));
    let (taken, done) = (Arc::clone(&room), crowd.done());
    let source = SimpleQueue::new(&consumer, &order.path)?;
    crowd.spawn(async move {
        loop {
            room.acquire().await?.forget();
            queue.put(ITEM).await?;
        }
    });
    crowd.spawn(async move {
        loop {
            source.take().await?;
            done.add(1);
            taken.add_permits(1);
        }
    });
    let answer = crowd.measure(order).await?;
    close(vec![producer, consumer]).await;
    Ok(answer)
}
