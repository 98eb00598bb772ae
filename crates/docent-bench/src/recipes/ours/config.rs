use super::series::{Measured, add_times};
use super::worker::{client, clients, close};
use crate::recipes::order::{Answer, Order};
use anyhow::{Context, Result};
use docent::config::Change;
use docent::{Config, Subscription};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

/// One session publishes to `subscribers`, each with its own session and `Config`. For each subscriber the
/// time is measured from the return of the write, and as `call_` from the call.
pub(super) async fn publish(order: &Order) -> Result<Answer> {
    let publisher = client(order).await?;
    let config: Config<u64> = Config::new(&publisher, &order.path)?;
    config.publish(&0).await?;
    let (subscribers, mut tasks) = (clients(order, order.count("subscribers")).await?, JoinSet::new());
    let (seen, received) = unbounded_channel();
    for client in &subscribers {
        let config: Config<u64> = Config::new(client, &order.path)?;
        tasks.spawn(follow(config.subscribe().await?, seen.clone()));
    }

    let (mut deliveries, measured) = (DeliveryTimes::by(received, subscribers.len()), Measured::start());
    for value in 1..=order.number("samples") {
        let called = Instant::now();
        config.publish(&value).await?;
        deliveries.all(value, called).await?;
    }
    let mut answer = measured.stop(order.number("samples")).await;
    deliveries.add_to(&mut answer);
    tasks.shutdown().await;
    close(subscribers).await;
    publisher.close().await;
    Ok(answer)
}

async fn follow(mut subscription: Subscription<u64>, seen: UnboundedSender<(u64, Instant)>) {
    while let Some(change) = subscription.changed().await {
        if let Ok(Change::Value(value)) = change {
            report_seen(&seen, *value.value());
        }
    }
}

/// Notifies the publisher that a value has arrived.
pub(super) fn report_seen(seen: &UnboundedSender<(u64, Instant)>, value: u64) {
    // The bench may already have ended.
    let _ = seen.send((value, Instant::now()));
}

/// Times until each of many subscribers received a value.
pub(super) struct DeliveryTimes {
    received: UnboundedReceiver<(u64, Instant)>,
    subscribers: usize,
    since_return: Vec<Duration>,
    since_call: Vec<Duration>,
}

impl DeliveryTimes {
    pub(super) fn by(received: UnboundedReceiver<(u64, Instant)>, subscribers: usize) -> Self {
        Self { received, subscribers, since_return: Vec::new(), since_call: Vec::new() }
    }

    /// Waits until all subscribers have received a value, whose write was called at `called` and has just
    /// returned. A subscriber that received the value before the return counts with zero.
    pub(super) async fn all(&mut self, value: u64, called: Instant) -> Result<()> {
        let (returned, mut remaining) = (Instant::now(), self.subscribers);
        while remaining > 0 {
            let (seen_value, at) = self.received.recv().await.context("no subscriber is left")?;
            if seen_value == value {
                self.since_return.push(at.saturating_duration_since(returned));
                self.since_call.push(at - called);
                remaining -= 1;
            }
        }
        Ok(())
    }

    pub(super) fn add_to(&self, answer: &mut Answer) {
        add_times(answer, "", &self.since_return);
        add_times(answer, "call_", &self.since_call);
    }
}
