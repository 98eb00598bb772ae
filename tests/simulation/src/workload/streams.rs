use super::follower_record::FollowerRecord;
use super::{ClientCtx, Workload};
use docent::node::{Node, TransactionResult};
use docent::{Error, ErrorKind};
use docent_checker::{EventKind, Following, Outcome, Publishing, Way, Written};
use docent_server::Transaction;
use fastrand::Rng;
use futures_util::future::{LocalBoxFuture, join, join_all};
use futures_util::{FutureExt, StreamExt};
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::time::{sleep, timeout};

const FOLDER: &str = "/streams";

/// Clients that now and then set two nodes in one transaction, and follow all nodes with bare streams.
///
/// A stream re-reads only after an event, so a change that is not reported stays unseen until its node is set
/// again. To show that, there are many nodes, which are rarely set.
#[derive(Debug)]
pub(super) struct StreamsWorkload {
    pairs: Vec<[String; 2]>,
}

impl StreamsWorkload {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        let pair = |number| ["left", "right"].map(|side| format!("{FOLDER}/{side}-{number}"));
        Self { pairs: (0..[2, 4, 8][rng.usize(..3)]).map(pair).collect() }
    }

    /// Sets pairs until it must stop, or the client is closed.
    async fn set(&self, ctx: &ClientCtx, mut rng: Rng) {
        while timeout(ctx.setting.pause(&mut rng), ctx.stop.cancelled()).await.is_err() {
            if set_both(ctx, &self.pairs[rng.usize(..self.pairs.len())]).await.is_break() {
                return;
            }
        }
    }
}

/// Sets a pair to one number. Breaks if the client is closed.
async fn set_both(ctx: &ClientCtx, pair: &[String; 2]) -> ControlFlow<()> {
    let ids = [ctx.recorder.attempt(), ctx.recorder.attempt()];
    let number = ids[0].0;
    for (id, path) in ids.iter().zip(pair) {
        let began = Publishing::Began { path: path.clone(), way: Way::Replace(number) };
        ctx.recorder.write(EventKind::Published(*id, began));
    }
    let both =
        pair.iter().fold(ctx.client.transaction(), |both, path| both.set(path, number.to_string(), None));
    let done = both.commit_exactly().await;
    for (place_in_pair, id) in ids.into_iter().enumerate() {
        let outcome = outcome(&done, place_in_pair);
        ctx.recorder.write(EventKind::Published(id, Publishing::Done(outcome)));
    }
    match done {
        Err(error) if error.kind() == ErrorKind::Closed => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    }
}

/// Outcome of one operation of a transaction.
fn outcome(done: &Result<Option<Vec<TransactionResult>>, Error>, operation: usize) -> Outcome {
    match done {
        Ok(results) => Outcome::Applied(match results.as_ref().and_then(|results| results.get(operation)) {
            Some(TransactionResult::Set(stat)) => Some(stat.mzxid),
            _ => None,
        }),
        Err(error) if error.may_have_applied() => Outcome::Unknown,
        Err(_) => Outcome::Nothing,
    }
}

/// Follows a node until the client is closed.
async fn follow(ctx: &ClientCtx, path: &str) {
    let Ok(mut nodes) = ctx.client.watch_data(path) else { return };
    let shown = FollowerRecord::begin(ctx, path);
    while let Some(node) = nodes.next().await {
        // The stream continues after an error.
        let Ok(node) = node else { continue };
        shown.write(match node {
            None => Following::Missing,
            Some(Node { data, stat, .. }) => match number(&data) {
                Some(number) => Following::Saw { number, zxid: stat.mzxid },
                None => Following::Refused,
            },
        });
    }
}

fn number(data: &[u8]) -> Option<u64> {
    std::str::from_utf8(data).ok()?.parse().ok()
}

impl Workload for StreamsWorkload {
    fn nodes(&self) -> Vec<String> {
        [FOLDER.to_owned()].into_iter().chain(self.pairs.iter().flatten().cloned()).collect()
    }

    fn emptied(&self) -> Vec<String> {
        Vec::new()
    }

    fn written(&self, journal: &[Transaction]) -> Vec<Written> {
        let note = |transaction: &Transaction| {
            let (path, data) = (&transaction.path, transaction.data.as_deref()?);
            self.pairs.iter().flatten().find(|node| *node == path)?;
            Some(Written { path: path.clone(), zxid: transaction.zxid, number: number(data) })
        };
        journal.iter().filter_map(note).collect()
    }

    fn run<'a>(&'a self, ctx: ClientCtx, rng: &'a mut Rng) -> LocalBoxFuture<'a, ()> {
        async move {
            let following = join_all(self.pairs.iter().flatten().map(|path| follow(&ctx, path)));
            let enough = async {
                ctx.stop.cancelled().await;
                // Time until the last change must have been shown.
                sleep(ctx.setting.timeout * 4 + Duration::from_secs(25)).await;
            };
            let until_enough = async {
                tokio::select! {
                    _ = following => {}
                    () = enough => {}
                }
            };
            join(until_enough, self.set(&ctx, rng.fork())).await;
        }
        .boxed_local()
    }
}
