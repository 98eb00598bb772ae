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

/// Time after which all started work is done, and its temporary memory is freed.
const PAUSE: Duration = Duration::from_millis(500);

/// Measures the resident kilobytes of each of `count` things, in a process that has done no other work.
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
        _ => bail!("cannot measure the memory of a {kind}"),
    };
    client.close().await;
    answer
}

/// Returns the memory that the output of `create` adds, for each of `count`. The output lives until it is
/// measured.
async fn growth<T>(order: &Order, count: usize, create: impl Future<Output = Result<T>>) -> Result<Answer> {
    tokio::time::sleep(PAUSE).await;
    let before = resident()?;
    let created = create.await?;
    tokio::time::sleep(PAUSE + order.millis("settle")).await;
    let after = resident()?;
    drop(created);
    Ok(Answer::default().with("kilobytes", (after - before) / count as f64))
}

/// Returns the resident memory in kilobytes, as reported by the kernel.
fn resident() -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    line.trim().trim_end_matches(" kB").parse().context("VmRSS is not a number")
}

async fn idle_clients(order: &Order) -> Result<Answer> {
    // The first things create what all of them share.
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

/// Acquires `count` locks and returns their guards.
async fn held(client: &Client, order: &Order) -> Result<Vec<docent::locks::MutexGuard>> {
    let mut guards = Vec::new();
    for number in 0..order.count("count") {
        guards.push(Mutex::new(client, &format!("{}/{number}", order.path))?.acquire().await?);
    }
    Ok(guards)
}

/// Measures one waiter for each of `count` locks, which another session holds.
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
        let service: Service<String> = registry.typed_service(SERVICE).await?;
        Ok(service)
    })
    .await
}

/// Measures subscriptions at `count` paths.
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
