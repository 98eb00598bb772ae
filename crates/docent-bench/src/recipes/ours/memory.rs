use super::worker::{client, clients, close};
use crate::recipes::order::{Answer, Order};
use crate::recipes::populated::{SERVICE, instance};
use anyhow::{Context, Result, bail};
use docent::discovery::{Registry, Service};
use docent::node::CreateMode;
use docent::{Client, Config, Mutex};
use futures_util::StreamExt;
use std::fs;
use std::future::Future;
use std::time::Duration;
use tokio::task::JoinSet;

/// Time after which everything that was begun is done, and what it took for that is given back.
const PAUSE: Duration = Duration::from_millis(500);

/// Kilobytes of resident memory for each of `count` things, in a process that has done nothing else.
pub(super) async fn of(kind: &str, order: &Order) -> Result<Answer> {
    let client = client(order).await?;
    let answer = match kind {
        "client" => idle_clients(order).await,
        "guard" => guards(&client, order).await,
        "waiter" => waiters(&client, order).await,
        "watch" => watches(&client, order).await,
        "registration" => registrations(&client, order).await,
        "viewed" => viewed(&client, order).await,
        "subscription" => subscriptions(&client, order).await,
        _ => bail!("the memory of a {kind} is not known"),
    };
    client.close().await;
    answer
}

/// Memory that `make` adds, for each of `count`. Its makings live until they were measured.
async fn growth<T>(order: &Order, count: usize, make: impl Future<Output = Result<T>>) -> Result<Answer> {
    tokio::time::sleep(PAUSE).await;
    let before = resident()?;
    let made = make.await?;
    tokio::time::sleep(PAUSE + order.millis("settle")).await;
    let after = resident()?;
    drop(made);
    Ok(Answer::default().with("kilobytes", (after - before) / count as f64))
}

/// Kilobytes that the kernel says are resident.
fn resident() -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    line.trim().trim_end_matches(" kB").parse().context("VmRSS is no number")
}

async fn idle_clients(order: &Order) -> Result<Answer> {
    // The first ones make what all of them use.
    let (count, mut kept) = (order.count("count"), Vec::new());
    let first = clients(order, count / 10).await?;
    let answer = growth(order, count, async {
        kept = clients(order, count).await?;
        Ok(())
    })
    .await;
    close(kept).await;
    close(first).await;
    answer
}

async fn guards(client: &Client, order: &Order) -> Result<Answer> {
    growth(order, order.count("count"), held(client, order)).await
}

/// Guards of as many locks.
async fn held(client: &Client, order: &Order) -> Result<Vec<docent::locks::MutexGuard>> {
    let mut guards = Vec::new();
    for number in 0..order.count("count") {
        guards.push(Mutex::new(client, &format!("{}/{number}", order.path))?.acquire().await?);
    }
    Ok(guards)
}

/// One waits for each of as many locks, which another session holds.
async fn waiters(client: &Client, order: &Order) -> Result<Answer> {
    let holder = super::worker::client(order).await?;
    let _held = held(&holder, order).await?;
    let mut tasks = JoinSet::new();
    let answer = growth(order, order.count("count"), async {
        for number in 0..order.count("count") {
            let mutex = Mutex::new(client, &format!("{}/{number}", order.path))?;
            tasks.spawn(mutex.acquire());
            while mutex.participants().await?.len() < 2 {}
        }
        Ok(())
    })
    .await;
    tasks.shutdown().await;
    holder.close().await;
    answer
}

async fn watches(client: &Client, order: &Order) -> Result<Answer> {
    growth(order, order.count("count"), async {
        let mut streams = Vec::new();
        client.create(&order.path, "", CreateMode::Persistent).await?;
        for number in 0..order.count("count") {
            let mut stream = client.watch_exists(&format!("{}/{number}", order.path))?;
            stream.next().await.context("a watch has ended")??;
            streams.push(stream);
        }
        Ok(streams)
    })
    .await
}

async fn registrations(client: &Client, order: &Order) -> Result<Answer> {
    let registry = Registry::new(client, &order.path)?;
    growth(order, order.count("count"), async {
        let mut registered = Vec::new();
        for _ in 0..order.count("count") {
            registered.push(registry.register(instance("0")).await?);
        }
        Ok(registered)
    })
    .await
}

async fn viewed(client: &Client, order: &Order) -> Result<Answer> {
    let registry = Registry::new(client, &order.path)?;
    growth(order, order.count("instances"), async {
        let service: Service<String> = registry.service(SERVICE).await?;
        Ok(service)
    })
    .await
}

/// Subscriptions at as many paths.
async fn subscriptions(client: &Client, order: &Order) -> Result<Answer> {
    let mut configs = Vec::new();
    for number in 0..order.count("count") {
        let config: Config<u64> = Config::new(client, &format!("{}/{number}", order.path))?;
        config.publish(&0).await?;
        configs.push(config);
    }
    growth(order, configs.len(), async {
        let mut subscribed = Vec::new();
        for config in &configs {
            subscribed.push(config.subscribe().await?);
        }
        Ok(subscribed)
    })
    .await
}
