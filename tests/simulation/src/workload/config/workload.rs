use super::publish::{count, publish};
use super::subscribe::subscribe;
use crate::workload::pace::Pace;
use crate::workload::{ClientCtx, Workload};
use docent::Config;
use docent_checker::Written;
use docent_server::Transaction;
use fastrand::Rng;
use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, join, join_all};
use std::ops::ControlFlow;

const FOLDER: &str = "/config";
const VALUES: [&str; 2] = ["/config/one", "/config/other"];
pub(super) const COUNTER: &str = "/config/counter";

/// The client that publishes if only one does.
const PUBLISHER: &str = "client-0";

/// Clients that publish values over each other, roll back and delete them, follow them and count, while
/// another process writes unreadable data. In half of the runs one client publishes alone and all others
/// follow.
#[derive(Debug)]
pub(in crate::workload) struct ConfigWorkload {
    /// Number of earlier values that are kept.
    history: usize,
    /// Whether only one client publishes.
    alone: bool,
    /// Maximum number of values that are published one directly after the other.
    burst: u32,
    pace: Pace,
}

impl ConfigWorkload {
    pub(in crate::workload) fn draw(rng: &mut Rng) -> Self {
        let (history, pace) = ([0, 2, 10][rng.usize(..3)], Pace::draw(rng));
        Self { history, alone: rng.bool(), burst: [1, 3, 8][rng.usize(..3)], pace }
    }

    fn config(&self, ctx: &ClientCtx, rng: &mut Rng) -> Option<Config<u64>> {
        let path = VALUES[rng.usize(..VALUES.len())];
        Config::builder(&ctx.client, path).history(self.history).build().ok()
    }

    /// One subscription. Breaks if the client is closed.
    async fn follow(&self, ctx: &ClientCtx, rng: &mut Rng) -> ControlFlow<()> {
        match self.config(ctx, rng) {
            Some(config) => subscribe(ctx, &config, rng).await,
            None => ControlFlow::Break(()),
        }
    }

    /// One call, or several. Breaks if the client is closed.
    async fn work(&self, ctx: &ClientCtx, rng: &mut Rng) -> ControlFlow<()> {
        let Some(config) = self.config(ctx, rng) else { return ControlFlow::Break(()) };
        let publishes = !self.alone || ctx.client.identity() == PUBLISHER;
        match rng.u8(..9) {
            0..=4 if publishes => {
                for _ in 0..rng.u32(1..=self.burst) {
                    publish(ctx, &config, rng).await?;
                }
                ControlFlow::Continue(())
            }
            0..=7 => count(ctx, rng).await,
            _ => {
                // The outcome does not matter.
                let _ = ctx.client.set(config.path(), "no number", None).await;
                ControlFlow::Continue(())
            }
        }
    }
}

impl Workload for ConfigWorkload {
    fn nodes(&self) -> Vec<String> {
        vec![FOLDER.to_owned()]
    }

    fn emptied(&self) -> Vec<String> {
        Vec::new()
    }

    fn written(&self, journal: &[Transaction]) -> Vec<Written> {
        let note = |transaction: &Transaction| {
            let data = transaction.data.as_deref()?;
            let number = match transaction.path.as_str() {
                COUNTER => data.first_chunk().map(|bytes| u64::from_be_bytes(*bytes)),
                path if VALUES.contains(&path) => std::str::from_utf8(data).ok()?.parse().ok(),
                _ => return None,
            };
            Some(Written { path: transaction.path.clone(), zxid: transaction.zxid, number })
        };
        journal.iter().filter_map(note).collect()
    }

    fn run<'a>(&'a self, ctx: ClientCtx, rng: &'a mut Rng) -> LocalBoxFuture<'a, ()> {
        async move {
            // Separate tasks, so that a client that follows for long also works.
            let follow = async |rng: &mut Rng| self.follow(&ctx, rng).await;
            let work = async |rng: &mut Rng| self.work(&ctx, rng).await;
            let following: Vec<_> =
                (0..self.pace.tasks(rng)).map(|_| self.pace.task(&ctx, rng.fork(), follow)).collect();
            let working: Vec<_> =
                (0..self.pace.tasks(rng)).map(|_| self.pace.task(&ctx, rng.fork(), work)).collect();
            join(join_all(following), join_all(working)).await;
        }
        .boxed_local()
    }
}
