use super::crowd::{Crowd, Done};
use super::series::Measured;
use super::worker::{client, clients, close};
use crate::recipes::order::{Answer, Order};
use anyhow::Result;
use docent::guard::Guard;
use docent::locks::{AcquireError, SharedMutex};
use docent::{Mutex, RwLock};
use std::future::Future;
use tokio::task::JoinSet;

/// One in this many turns at the read/write lock is a write.
const TURNS_PER_WRITE: usize = 10;
/// Number of sessions that share the waiters of a long line.
const LINE_SESSIONS: usize = 20;

/// Measures `clients` sessions that contend for one mutex. With `drop` guards are dropped, otherwise their
/// release is awaited.
pub(super) async fn mutex(order: &Order) -> Result<Answer> {
    let (clients, drops) = (clients(order, order.count("clients")).await?, order.number("drop") > 0);
    let mut crowd = Crowd::default();
    for client in &clients {
        let mutex = Mutex::new(client, &order.path)?;
        crowd.spawn(contend(move || mutex.acquire(), drops, crowd.done()));
    }
    let answer = crowd.measure(order).await?;
    close(clients).await;
    Ok(answer)
}

async fn contend<G: Guard, F>(acquire: impl Fn() -> F, drops: bool, done: Done) -> Result<()>
where
    F: Future<Output = Result<G, AcquireError>>,
{
    loop {
        let guard = acquire().await?;
        done.add(1);
        match drops {
            true => drop(guard),
            false => drop(guard.release().await?),
        }
    }
}

/// Maximum number of times that a shared ticket is passed on before it is given up.
const LOCAL_TURNS: u32 = 1_000;

/// Measures `tasks` of one session that contend for one mutex and share its tickets.
pub(super) async fn shared(order: &Order) -> Result<Answer> {
    let client = client(order).await?;
    let mutex = SharedMutex::builder(&client, &order.path).limit(LOCAL_TURNS).build()?;
    let mut crowd = Crowd::default();
    for _ in 0..order.count("tasks") {
        let mutex = mutex.clone();
        crowd.spawn(contend(move || mutex.acquire(), false, crowd.done()));
    }
    let answer = crowd.measure(order).await?;
    client.close().await;
    Ok(answer)
}

/// Measures `clients` sessions that contend for one read/write lock. One turn in ten is a write.
pub(super) async fn read_write(order: &Order) -> Result<Answer> {
    let clients = clients(order, order.count("clients")).await?;
    let mut crowd = Crowd::default();
    for (number, client) in clients.iter().enumerate() {
        let lock = RwLock::new(client, &order.path)?;
        crowd.spawn(take_turns(lock, number, crowd.done()));
    }
    let answer = crowd.measure(order).await?;
    close(clients).await;
    Ok(answer)
}

async fn take_turns(lock: RwLock, number: usize, done: Done) -> Result<()> {
    let mut turn = number;
    loop {
        turn += 1;
        if turn.is_multiple_of(TURNS_PER_WRITE) {
            lock.write().await?.release().await?;
        } else {
            lock.read().await?.release().await?;
        }
        done.add(1);
    }
}

/// `waiters` join the line of a held mutex, and acquire it one after the other once it is released. Each
/// releases it immediately.
pub(super) async fn line(order: &Order) -> Result<Answer> {
    let (waiters, holder) = (order.count("waiters"), client(order).await?);
    let clients = clients(order, LINE_SESSIONS.min(waiters)).await?;
    let held = Mutex::new(&holder, &order.path)?.acquire().await?;

    let (mut tasks, mut mutexes) = (JoinSet::new(), Vec::new());
    for client in &clients {
        mutexes.push(Mutex::new(client, &order.path)?);
    }
    for mutex in mutexes.iter().cycle().take(waiters) {
        let acquire = mutex.acquire();
        tasks.spawn(async move { anyhow::Ok(acquire.await?.release().await?) });
    }
    let watched = Mutex::new(&holder, &order.path)?;
    while watched.participants().await?.len() <= waiters {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    // By the end of the pause each waiter has found its place and set its watches.
    tokio::time::sleep(order.millis("lead")).await;

    let measured = Measured::start();
    held.release().await?;
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    let answer = measured.stop(waiters as u64).await;
    close(clients).await;
    holder.close().await;
    Ok(answer)
}
