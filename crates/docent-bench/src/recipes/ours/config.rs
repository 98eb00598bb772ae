use super::series::{Measured, add_times};
use super::worker::{client, clients, close};
use crate::recipes::order::{Answer, Order};
use anyhow::{Context, Result};
use docent::config::Change;
use docent::{Config, Subscription};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

/// One session publishes and `subscribers` hear of it, each with a session and a `Config` of its own: for
/// each of them the time from the return of the write, and as `call_` from the call.
pub(super) async fn publish(order: &Order) -> Result<Answer> {
    let publisher = client(order).await?;
    let config: Config<u64> = Config::new(&publisher, &order.path)?;
    config.publish(&0).await?;
    let (subscribers, mut tasks) = (clients(order, order.count("subscribers")).await?, JoinSet::new());
    let (seen, heard) = unbounded_channel();
    for client in &subscribers {
        let config: Config<u64> = Config::new(client, &order.path)?;
        tasks.spawn(follow(config.subscribe().await?, seen.clone()));
    }

    let (mut told, measured) = (Told::by(heard, subscribers.len()), Measured::start());
    for value in 1..=order.number("samples") {
        let called = Instant::now();
        config.publish(&value).await?;
        told.all(value, called).await?;
    }
    let mut answer = measured.stop(order.number("samples")).await;
    told.add_to(&mut answer);
    tasks.shutdown().await;
    close(subscribers).await;
    publisher.close().await;
    Ok(answer)
}

async fn follow(mut subscription: Subscription<u64>, seen: UnboundedSender<(u64, Instant)>) {
    while let Some(change) = subscription.changed().await {
        if let Ok(Change::Value(value)) = change {
            said(&seen, *value.value());
        }
    }
}

/// Tells the publisher that a value has come.
pub(super) fn said(seen: &UnboundedSender<(u64, Instant)>, value: u64) {
    // The bench may have ended by then.
    let _ = seen.send((value, Instant::now()));
}

/// Times until each of many subscribers was told of a value.
pub(super) struct Told {
    heard: UnboundedReceiver<(u64, Instant)>,
    subscribers: usize,
    since_return: Vec<Duration>,
    since_call: Vec<Duration>,
}

impl Told {
    pub(super) fn by(heard: UnboundedReceiver<(u64, Instant)>, subscribers: usize) -> Self {
        Self { heard, subscribers, since_return: Vec::new(), since_call: Vec::new() }
    }

    /// Waits until all were told of a value, whose write was called at `called` and has just returned. Those
    /// who were told before that count as told at once.
    pub(super) async fn all(&mut self, value: u64, called: Instant) -> Result<()> {
        let (returned, mut left) = (Instant::now(), self.subscribers);
        while left > 0 {
            let (told, at) = self.heard.recv().await.context("nobody follows")?;
            if told == value {
                self.since_return.push(at.saturating_duration_since(returned));
                self.since_call.push(at - called);
                left -= 1;
            }
        }
        Ok(())
    }

    pub(super) fn add_to(&self, answer: &mut Answer) {
        add_times(answer, "", &self.since_return);
        add_times(answer, "call_", &self.since_call);
    }
}
