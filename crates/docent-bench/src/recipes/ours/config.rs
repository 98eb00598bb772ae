use super::series::{Measured, add_times};
use super::worker::{client, clients, close};
use crate::recipes::order::{Answer, Order};
use anyhow::{Context, Result};
use docent::config::Change;
use docent::{Config, Subscription};
use std::time::Instant;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

/// One session publishes and `subscribers` hear of it, each with a session and a `Config` of its own: for
/// each of them the time from the return of the write, and as `call_` from the call.
pub(super) async fn publish(order: &Order) -> Result<Answer> {
    let publisher = client(order).await?;
    let config: Config<u64> = Config::new(&publisher, &order.path)?;
    config.publish(&0).await?;
    let (subscribers, mut tasks) = (clients(order, order.count("subscribers")).await?, JoinSet::new());
    let (seen, mut heard) = unbounded_channel();
    for client in &subscribers {
        let config: Config<u64> = Config::new(client, &order.path)?;
        tasks.spawn(follow(config.subscribe().await?, seen.clone()));
    }

    let (mut since_return, mut since_call, measured) = (Vec::new(), Vec::new(), Measured::start());
    for value in 1..=order.number("samples") {
        let called = Instant::now();
        config.publish(&value).await?;
        let returned = Instant::now();
        let mut left = subscribers.len();
        while left > 0 {
            let (told, at): (u64, Instant) = heard.recv().await.context("nobody follows")?;
            if told == value {
                since_return.push(at.saturating_duration_since(returned));
                since_call.push(at - called);
                left -= 1;
            }
        }
    }
    let mut answer = measured.stop(order.number("samples")).await;
    add_times(&mut answer, "", &since_return);
    add_times(&mut answer, "call_", &since_call);
    tasks.shutdown().await;
    close(subscribers).await;
    publisher.close().await;
    Ok(answer)
}

async fn follow(mut subscription: Subscription<u64>, seen: UnboundedSender<(u64, Instant)>) {
    while let Some(change) = subscription.changed().await {
        if let Ok(Change::Value(value)) = change {
            // The bench may have ended by then.
            let _ = seen.send((*value.value(), Instant::now()));
        }
    }
}
