use super::pace::Pace;
use super::{ClientCtx, Workload};
use docent::{CreateMode, Error, ErrorKind};
use fastrand::Rng;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use std::ops::ControlFlow;

const ROOT: &str = "/tree";

/// Names at each depth: few, so that clients use the same nodes.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// Maximum depth of the tree.
const DEPTH: usize = 5;

/// Clients that create, set and delete nodes of one small and deep tree, alone and in transactions, while
/// observers watch the whole tree.
#[derive(Debug)]
pub(super) struct TreeWorkload {
    pace: Pace,
}

impl TreeWorkload {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        Self { pace: Pace::draw(rng) }
    }

    /// One change, which may fail. Breaks if the client is closed.
    async fn change(&self, ctx: &ClientCtx, rng: &mut Rng) -> ControlFlow<()> {
        let (client, path) = (&ctx.client, path(rng));
        let done = match rng.u8(..12) {
            0..=3 => grow(ctx, &path, rng).await,
            4..=6 => client.set(&path, "value", None).await.map(drop),
            7..=8 => client.delete(&path, None).await,
            9 => {
                // The remaining nodes do not matter.
                let _ = client.delete_all(&path).await;
                Ok(())
            }
            10 => client.create(&own(&path, rng), "", CreateMode::Ephemeral).await.map(drop),
            _ => {
                let (one, other) = (format!("{path}/a"), format!("{path}/a/b"));
                let both = client.transaction().set(&path, "both", None);
                let both = both.create(&one, "", CreateMode::Persistent);
                both.create(&other, "", CreateMode::Persistent).commit().await.map(drop)
            }
        };
        match done {
            Err(error) if error.kind() == ErrorKind::Closed => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Creates a node and its parents.
async fn grow(ctx: &ClientCtx, path: &str, rng: &mut Rng) -> Result<(), Error> {
    let depths = path.match_indices('/').skip(2).map(|(place, _)| place).chain([path.len()]);
    for depth in depths {
        match ctx.client.create(&path[..depth], "", CreateMode::Persistent).await {
            Err(error) if error.kind() != ErrorKind::NodeExists => return Err(error),
            _ => {}
        }
    }
    if rng.bool() {
        return Ok(());
    }
    ctx.client.create(&own(path, rng), "", CreateMode::Ephemeral).await.map(drop)
}

/// Path of an ephemeral node, at which a persistent node never exists.
fn own(path: &str, rng: &mut Rng) -> String {
    format!("{path}/own-{}", rng.u8(..3))
}

fn path(rng: &mut Rng) -> String {
    let depth = rng.usize(1..=DEPTH);
    (0..depth).fold(ROOT.to_owned(), |path, _| format!("{path}/{}", NAMES[rng.usize(..NAMES.len())]))
}

impl Workload for TreeWorkload {
    fn nodes(&self) -> Vec<String> {
        let below = NAMES.map(|name| format!("{ROOT}/{name}"));
        [ROOT.to_owned()].into_iter().chain(below).collect()
    }

    fn emptied(&self) -> Vec<String> {
        Vec::new()
    }

    fn watched(&self) -> Vec<String> {
        let deep = NAMES.iter().flat_map(|name| [format!("{ROOT}/{name}/a"), format!("{ROOT}/a/{name}/b/c")]);
        self.nodes().into_iter().chain(deep).collect()
    }

    fn observers(&self) -> u32 {
        2
    }

    fn run<'a>(&'a self, ctx: ClientCtx, rng: &'a mut Rng) -> LocalBoxFuture<'a, ()> {
        async move { self.pace.toil(&ctx, rng, async |rng| self.change(&ctx, rng).await).await }.boxed_local()
    }
}
