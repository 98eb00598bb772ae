//! The process that is profiled. It performs an operation twice. The profiler collects during the second
//! call, in [`measured_operation`].

use super::operation::Operation;
use anyhow::{Context, Result};
use clap::Args;
use docent::{Client, Config, Mutex, Queue};
use std::future::Future;
use std::thread;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// Command line of a worker.
#[derive(Debug, Args)]
pub(crate) struct WorkerOptions {
    operation: Operation,
    connect_string: String,
}

/// Runs an operation while the profiler collects, on the thread that also runs all tasks of the client.
#[inline(never)]
fn measured_operation<F: Future>(runtime: &Runtime, operation: F) -> F::Output {
    runtime.block_on(operation)
}

pub(crate) fn work(options: &WorkerOptions) -> Result<()> {
    let runtime = single_threaded()?;
    let client = runtime.block_on(Client::connect(options.connect_string.as_str()))?;
    match options.operation {
        Operation::Acquire => acquire(&runtime, &client)?,
        Operation::AcquireBehindTwo => acquire_behind_two(&runtime, &client, &options.connect_string)?,
        Operation::Publish => publish(&runtime, &client)?,
        Operation::TakeAndAck => take_and_ack(&runtime, &client)?,
    }
    runtime.block_on(client.close());
    Ok(())
}

fn single_threaded() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

fn acquire(runtime: &Runtime, client: &Client) -> Result<()> {
    let mutex = Mutex::new(client, "/lock")?;
    runtime.block_on(async { mutex.acquire().await?.release().await.map_err(anyhow::Error::from) })?;
    let guard = measured_operation(runtime, mutex.acquire())?;
    runtime.block_on(guard.release())?;
    Ok(())
}

fn acquire_behind_two(runtime: &Runtime, client: &Client, connect_string: &str) -> Result<()> {
    let mutex = Mutex::new(client, "/lock")?;
    for round in 0..2 {
        let (ready, is_ready) = oneshot::channel();
        let clients_ahead = thread::spawn({
            let connect_string = connect_string.to_owned();
            move || single_threaded()?.block_on(two_ahead(&connect_string, ready))
        });
        is_ready.blocking_recv().context("the two clients ahead failed")?;
        let guard = match round {
            0 => runtime.block_on(mutex.acquire())?,
            _ => measured_operation(runtime, mutex.acquire())?,
        };
        runtime.block_on(guard.release())?;
        clients_ahead.join().map_err(|_| anyhow::anyhow!("the two clients ahead panicked"))??;
    }
    Ok(())
}

/// Holds the lock with one client while a second client waits, and releases it when a third client waits
/// behind them.
async fn two_ahead(connect_string: &str, ready: oneshot::Sender<()>) -> Result<()> {
    let (first, second) = tokio::try_join!(Client::connect(connect_string), Client::connect(connect_string))?;
    let holder = Mutex::new(&first, "/lock")?.acquire().await?;
    let waiter = tokio::spawn(Mutex::new(&second, "/lock")?.acquire());
    let line = Mutex::new(&first, "/lock")?;
    wait_for_participants(&line, 2).await?;
    let _ = ready.send(());
    wait_for_participants(&line, 3).await?;
    holder.release().await?;
    waiter.await??.release().await?;
    first.close().await;
    second.close().await;
    Ok(())
}

async fn wait_for_participants(mutex: &Mutex, number: usize) -> Result<()> {
    while mutex.participants().await?.len() < number {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

fn publish(runtime: &Runtime, client: &Client) -> Result<()> {
    let config = Config::<u32>::new(client, "/config")?;
    let publish = async |value: u32, subscription: &mut docent::config::Subscription<u32>| {
        config.publish(&value).await?;
        subscription.changed().await.context("the client was closed")??;
        anyhow::Ok(())
    };
    runtime.block_on(config.publish(&0))?;
    let mut subscription = runtime.block_on(config.subscribe())?;
    runtime.block_on(publish(1, &mut subscription))?;
    measured_operation(runtime, publish(2, &mut subscription))
}

fn take_and_ack(runtime: &Runtime, client: &Client) -> Result<()> {
    let queue = Queue::<String>::new(client, "/queue")?;
    let take = async || {
        queue.take().await?.ack().await?;
        anyhow::Ok(())
    };
    for _ in 0..4 {
        runtime.block_on(queue.put(&"item".to_owned()))?;
    }
    runtime.block_on(take())?;
    measured_operation(runtime, take())
}
