use crate::stage::Stage;
use anyhow::ensure;
use docent::Fence;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;

const WORKERS: usize = 4;
const TURNS: usize = 2;

/// Several workers, each with its own session as if in another process, take turns under one lock.
pub(crate) async fn show(stage: &Arc<Stage>) -> anyhow::Result<()> {
    stage.headline("Four workers, four sessions, one lock: one at a time, with rising fences");
    let referee = Arc::new(Referee::default());
    let mut workers = JoinSet::new();
    for number in 1..=WORKERS {
        workers.spawn(work(Arc::clone(stage), number, Arc::clone(&referee)));
    }
    while let Some(ended) = workers.join_next().await {
        ended??;
    }
    referee.check()
}

async fn work(stage: Arc<Stage>, number: usize, referee: Arc<Referee>) -> anyhow::Result<()> {
    let name = format!("worker {number}");
    let client = stage.client(&name).await?;
    let mutex = stage.mutex(&client, "turns")?;
    for turn in 1..=TURNS {
        let guard = mutex.acquire().await?;
        stage.print(&name, format_args!("acquired the lock, turn {turn}, fence {}", guard.fence()));
        guard.run(referee.watch(guard.fence())).await??;
        guard.release().await?;
    }
    client.close().await;
    Ok(())
}

/// Checks that no two workers work at the same time.
#[derive(Default)]
struct Referee {
    at_work: AtomicUsize,
    fences: Mutex<Vec<Fence>>,
}

impl Referee {
    /// Watches one worker's turn.
    async fn watch(&self, fence: Fence) -> anyhow::Result<()> {
        ensure!(self.at_work.fetch_add(1, SeqCst) == 0, "two workers held the lock at the same time");
        self.fences.lock().unwrap_or_else(PoisonError::into_inner).push(fence);
        sleep(Duration::from_millis(40)).await;
        self.at_work.fetch_sub(1, SeqCst);
        Ok(())
    }

    fn check(&self) -> anyhow::Result<()> {
        let fences = self.fences.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(fences.len() == WORKERS * TURNS, "{} turns were taken, not all", fences.len());
        ensure!(fences.is_sorted_by(|one, next| one < next), "the fences did not increase: {fences:?}");
        Ok(())
    }
}
