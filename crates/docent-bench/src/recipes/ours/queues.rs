use super::crowd::{Crowd, Done};
use super::series::Measured;
use super::worker::{client, clients, close};
use crate::recipes::order::{Answer, Order};
use anyhow::Result;
use docent::{Client, Delivery, Queue, SimpleQueue};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::future::ready;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::Semaphore;

pub(super) const ITEM: &str = "an item of a queue, of some forty bytes";
/// Maximum number of items that were put and not yet taken, besides the backlog.
pub(super) const ROOM: usize = 100;
/// Puts in flight while the backlog is created.
const IN_FLIGHT: usize = 256;

/// `producers` put items and `consumers` take and acknowledge them, each in its own session: one by one, in
/// batches of `batch`, or claimed ahead (`prefetch`). Each session has up to `flight` puts or
/// acknowledgements in flight. A `backlog` exists all the time.
pub(super) async fn queue(order: &Order) -> Result<Answer> {
    let (way, room) = (Way::of(order), Arc::new(Semaphore::new(ROOM)));
    let producers = clients(order, order.count("producers")).await?;
    let consumers = clients(order, order.count("consumers")).await?;
    let mut crowd = Crowd::default();
    fill(&producers[0], order).await?;
    for client in &producers {
        crowd.spawn(put(opened(client, order)?, way, Arc::clone(&room), None));
    }
    for client in &consumers {
        crowd.spawn(take(opened(client, order)?, way, Arc::clone(&room), crowd.done()));
    }
    let answer = crowd.measure(order).await?;
    close(producers).await;
    close(consumers).await;
    Ok(answer)
}

/// `producers` put `items` in all, each with up to `flight` in flight, while `consumers` take and acknowledge
/// them one by one. The measurement ends when the last item is acknowledged.
pub(super) async fn burst(order: &Order) -> Result<Answer> {
    let (way, items) = (Way::of(order), order.count("items"));
    let producers = clients(order, order.count("producers")).await?;
    let consumers = clients(order, order.count("consumers")).await?;
    let (mut crowd, room, taken) = (Crowd::default(), Semaphore::new(items), Semaphore::new(0));
    let (room, taken) = (Arc::new(room), Arc::new(taken));
    let measured = Measured::start();
    for client in &producers {
        let items = Some(items / producers.len());
        crowd.spawn(put(opened(client, order)?, way, Arc::clone(&room), items));
    }
    for client in &consumers {
        crowd.spawn(take(opened(client, order)?, way, Arc::clone(&taken), crowd.done()));
    }
    crowd.until(taken.acquire_many(u32::try_from(items)?)).await??.forget();
    let answer = measured.stop(items as u64).await;
    close(producers).await;
    close(consumers).await;
    Ok(answer)
}

/// How sessions put, take and acknowledge.
#[derive(Debug, Clone, Copy)]
struct Way {
    batch: usize,
    prefetch: usize,
    flight: usize,
}

impl Way {
    fn of(order: &Order) -> Self {
        let (batch, flight) = (order.count("batch").max(1), order.count("flight").max(1));
        Self { batch, prefetch: order.count("prefetch"), flight }
    }
}

fn opened(client: &Client, order: &Order) -> Result<Queue<String>> {
    let builder = Queue::builder(client, &order.path).unbounded();
    Ok(match order.count("prefetch") {
        0 => builder.build()?,
        prefetch => builder.prefetch(prefetch).build()?,
    })
}

async fn fill(client: &Client, order: &Order) -> Result<()> {
    let queue = opened(client, order)?;
    let items = vec![ITEM.to_owned(); order.count("backlog")];
    for items in items.chunks(IN_FLIGHT) {
        queue.put_all(items).await?;
    }
    Ok(())
}

/// Puts `items` items, or continues until the task is aborted.
async fn put(queue: Queue<String>, way: Way, room: Arc<Semaphore>, items: Option<usize>) -> Result<()> {
    let batch = vec![ITEM.to_owned(); way.batch];
    let turns = items.map_or(usize::MAX, |items| items / way.batch);
    let puts = (0..turns).map(|_| put_once(&queue, &batch, &room));
    stream::iter(puts).buffer_unordered(way.flight).try_for_each(|()| ready(Ok(()))).await
}

async fn put_once(queue: &Queue<String>, batch: &[String], room: &Semaphore) -> Result<()> {
    room.acquire_many(u32::try_from(batch.len())?).await?.forget();
    match batch {
        [item] => queue.put(item).await?,
        items => queue.put_all(items).await?,
    }
    Ok(())
}

async fn take(queue: Queue<String>, way: Way, room: Arc<Semaphore>, done: Done) -> Result<()> {
    let taken = |count: usize| {
        done.add(count);
        room.add_permits(count);
    };
    if way.prefetch > 0 {
        let acks = queue.deliveries().map(async |delivery| delivery?.ack().await);
        let mut acks = pin!(acks.buffer_unordered(way.flight));
        while acks.try_next().await?.is_some() {
            taken(1);
        }
        return Ok(());
    }
    loop {
        if way.batch == 1 {
            queue.take().await?.ack().await?;
            taken(1);
        } else {
            let deliveries = queue.take_batch(way.batch).await?;
            let count = deliveries.len();
            Delivery::ack_all(deliveries).await?;
            taken(count);
        }
    }
}

/// One session puts items and another takes them, behind a `backlog` of constant size.
pub(super) async fn simple(order: &Order) -> Result<Answer> {
    let (producer, consumer) = (client(order).await?, client(order).await?);
    let queue = SimpleQueue::new(&producer, &order.path)?;
    let puts = stream::iter(0..order.count("backlog")).map(|_| queue.put(ITEM)).buffer_unordered(IN_FLIGHT);
    puts.try_for_each(|_| ready(Ok(()))).await?;

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
