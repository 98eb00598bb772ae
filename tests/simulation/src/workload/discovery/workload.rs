use super::instance::serve;
use super::member::join;
use super::view::run_view;
use crate::workload::pace::Pace;
use crate::workload::{ClientCtx, Workload};
use docent::CreateMode;
use docent_checker::Written;
use docent_server::Transaction;
use fastrand::Rng;
use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, join_all};
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::time::{sleep, timeout};

pub(super) const SERVICES: &str = "/services";
pub(super) const SERVICE: &str = "echo";
/// Folder of the service's instances.
pub(super) const FOLDER: &str = "/services/echo";
pub(super) const GROUP: &str = "/group";

/// Node that never contains an instance: clients write garbage to it.
const BROKEN: &str = "/services/echo/broken";

/// Clients that announce instances and join a group, some with ids that other clients use too, and view both,
/// while some corrupt a node of the service.
#[derive(Debug)]
pub(in crate::workload) struct DiscoveryWorkload {
    /// How many attempts in eight use an id that other clients use.
    twins: u8,
    /// Whether views continue to show deleted instances for a while.
    graceful: bool,
    pace: Pace,
}

impl DiscoveryWorkload {
    pub(in crate::workload) fn draw(rng: &mut Rng) -> Self {
        Self { twins: rng.u8(0..=2), graceful: rng.bool(), pace: Pace::draw(rng) }
    }

    /// One registration, membership or view, or a corruption. Breaks if the client is closed.
    async fn attempt(&self, ctx: &ClientCtx, task: usize, rng: &mut Rng) -> ControlFlow<()> {
        // A restarted process uses the ids of its predecessor. No two tasks of a client use the same id.
        let id = match rng.u8(..8) {
            twin if twin < self.twins => format!("twin-{task}"),
            _ => format!("of-{}-{task}", ctx.recorder.client().number),
        };
        match rng.u8(..10) {
            0..=3 => serve(ctx, &id, rng).await,
            4 | 5 => join(ctx, &id, rng).await,
            6..=8 => run_view(ctx, self.graceful, rng).await,
            _ => spoil(ctx, rng).await,
        }
    }
}

/// Writes unreadable data, or deletes it.
async fn spoil(ctx: &ClientCtx, rng: &mut Rng) -> ControlFlow<()> {
    let client = &ctx.client;
    let garbage = ["", "{", "{\"name\":\"other\",\"id\":\"broken\"}", "null"][rng.usize(..4)];
    // The outcome does not matter.
    let _ = match rng.u8(..4) {
        0 => client.delete(BROKEN, None).await,
        1 => client.create(BROKEN, garbage, CreateMode::Persistent).await.map(drop),
        _ => client.set(BROKEN, garbage, None).await.map(drop),
    };
    ControlFlow::Continue(())
}

/// Idles for some time. Breaks if nothing new may begin, after everything must have settled.
pub(super) async fn stay(ctx: &ClientCtx, rng: &mut Rng) -> ControlFlow<()> {
    let span = ctx.setting.timeout.mul_f64(12.0 * rng.f64() * rng.f64());
    match timeout(span, ctx.stop.cancelled()).await {
        Ok(()) => {
            settled(ctx).await;
            ControlFlow::Break(())
        }
        Err(_) => ControlFlow::Continue(()),
    }
}

/// Waits until nothing new begins and everything must have settled: sessions of predecessors have ended, and
/// caches have re-read.
pub(super) async fn settled(ctx: &ClientCtx) {
    ctx.stop.cancelled().await;
    sleep(ctx.setting.timeout * 8 + Duration::from_secs(25)).await;
}

impl Workload for DiscoveryWorkload {
    fn nodes(&self) -> Vec<String> {
        [SERVICES, FOLDER, BROKEN, GROUP].map(str::to_owned).to_vec()
    }

    fn emptied(&self) -> Vec<String> {
        vec![GROUP.to_owned()]
    }

    fn written(&self, journal: &[Transaction]) -> Vec<Written> {
        let note = |transaction: &Transaction| {
            let text = std::str::from_utf8(transaction.data.as_deref()?).ok();
            let number = match docent_proto::parent(&transaction.path)? {
                FOLDER => text.and_then(payload),
                GROUP => text.and_then(|text| text.parse().ok()),
                _ => return None,
            };
            Some(Written { path: transaction.path.clone(), zxid: transaction.zxid, number })
        };
        journal.iter().filter_map(note).collect()
    }

    fn run<'a>(&'a self, ctx: ClientCtx, rng: &'a mut Rng) -> LocalBoxFuture<'a, ()> {
        async move {
            let ctx = &ctx;
            // More tasks than for a lock, because most of these idle.
            let tasks = (0..1 + self.pace.tasks(rng)).map(|task| {
                let attempt = async move |rng: &mut Rng| self.attempt(ctx, task, rng).await;
                self.pace.task(ctx, rng.fork(), attempt)
            });
            join_all(tasks.collect::<Vec<_>>()).await;
        }
        .boxed_local()
    }
}

/// The payload in the data of an instance: a number.
fn payload(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("\"payload\":")?;
    rest.split(|next: char| !next.is_ascii_digit()).next()?.parse().ok()
}
