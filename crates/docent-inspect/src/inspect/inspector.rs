use super::clock::Clock;
use super::reader::read;
use super::walk::walk;
use super::{InspectorBuilder, Limits, Survey};
use crate::live::{Reports, Surveys};
use crate::nodes::{Earlier, Nodes, Read, View};
use crate::recognise::recognise;
use crate::report::{Report, ServerTime, TimeSource};
use docent_core::recipe::debug_handle;
use docent_core::{Client, Error};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::SystemTime;

/// Shows which recipe a path is and its state, whether Docent, Curator or kazoo wrote it.
///
/// # Expected flow
/// [`path`](Self::path) reports on one path, [`walk`](Self::walk) on all recipes below a path, and
/// [`watch`](Self::watch) on one path whenever it changes. Cheap to clone.
///
/// # Guarantees
/// - Recipes are recognised only by the names and the data of nodes. If two recipes have the same layout, the
///   report names the [others](Report::may_be).
/// - Reads are limited by [`Limits`], and the report counts what was omitted.
/// - A node that may not be read is [named](Report::refused) and does not affect others.
/// - Ages are measured by the servers' clock, never by the local one.
///
/// # Caveats
/// Nodes are read one after the other, from the server that this client is connected to: a report is not a
/// snapshot, and that server may lag behind.
#[derive(Clone)]
pub struct Inspector {
    pub(super) client: Client,
    pub(super) limits: Limits,
    clock: Arc<Clock>,
}

/// A report, with the reads that it is based on.
pub(crate) struct Inspected {
    pub(crate) report: Report,
    pub(crate) reads: Vec<Read>,
    /// Number of nodes omitted because of a limit.
    pub(crate) skipped: usize,
}

/// Result of an inspection, with everything that it is based on.
pub(crate) struct Inspection<T> {
    pub(crate) result: T,
    pub(crate) nodes: Nodes,
    /// Reads for each inspected path.
    pub(crate) reads: Vec<(String, Vec<Read>)>,
}

impl Inspector {
    /// Creates an inspector with the default limits.
    pub fn new(client: &Client) -> Self {
        Self::builder(client).build()
    }

    /// Returns a builder for an inspector with its own settings.
    pub fn builder(client: &Client) -> InspectorBuilder {
        InspectorBuilder::new(client)
    }

    pub(super) fn with(client: Client, limits: Limits, clock: Clock) -> Self {
        Self { client, limits, clock: Arc::new(clock) }
    }

    /// Reports on one path. A path without a node is [`Absent`](crate::Recipe::Absent), which is not an
    /// error.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn path(&self, path: &str) -> impl Future<Output = Result<Report, Error>> + Send + use<> {
        let (inspector, path) = (self.clone(), path.to_owned());
        async move { Ok(inspector.inspect(&path, &mut Earlier::default()).await?.result) }
    }

    /// Reports on every recipe at `root` and below it, level by level. Nodes inside a recipe, such as the
    /// contenders of a lock, are not separate recipes. ZooKeeper's own nodes below `/zookeeper`, and nodes
    /// that clients keep for themselves in folders named `_docent`, are skipped.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn walk(&self, root: &str) -> impl Future<Output = Result<Survey, Error>> + Send + use<> {
        let (inspector, root) = (self.clone(), root.to_owned());
        async move { Ok(walk(&inspector, &root, &mut Earlier::default()).await?.result) }
    }

    /// Follows one path: yields its current report, and a new one after each change. A change of ages alone
    /// does not count.
    ///
    /// The stream watches the nodes that the report is based on, with one-shot watches that are re-armed, up
    /// to the [limit](Limits::watches), and reads again what changed. `unwatched` of [`Live`](crate::Live)
    /// counts the other nodes, which are read again with the next change and
    /// [periodically](Limits::look_every). Changes in quick succession are merged. While the servers are
    /// unreachable, the last report is repeated once, as stale. The stream ends when the client is closed.
    ///
    /// # On drop
    /// The watches at the server are removed.
    pub fn watch(&self, path: &str) -> Reports {
        Reports::new(self, path)
    }

    /// Follows all recipes at `root` and below it, as [`walk`](Self::walk) finds them: yields all current
    /// ones, and all of them again after each change of one. Changes of ages alone, and of nodes that are not
    /// recipes, do not count.
    ///
    /// Watches work as for [`watch`](Self::watch), with nodes near the root first.
    ///
    /// # On drop
    /// The watches at the server are removed.
    pub fn watch_below(&self, root: &str) -> Surveys {
        Surveys::new(self, root)
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the time by the servers' clock, if a node may be created for it.
    pub(super) async fn now(&self) -> Option<SystemTime> {
        self.clock.now(&self.client).await
    }

    pub(crate) async fn inspect(
        &self,
        path: &str,
        earlier: &mut Earlier,
    ) -> Result<Inspection<Report>, Error> {
        let now = self.now().await;
        let mut nodes = Nodes::default();
        loop {
            match inspect_nodes(&nodes, path, now, &self.limits) {
                Ok(Inspected { report, reads, .. }) => {
                    let reads = vec![(path.to_owned(), reads)];
                    return Ok(Inspection { result: report, nodes, reads });
                }
                Err(missing) => read(&self.client, &self.limits, &mut nodes, earlier, missing).await?,
            }
        }
    }
}

/// Reports on a path, based on nodes that were read.
///
/// # Errors
/// The reads that are missing.
pub(crate) fn inspect_nodes(
    nodes: &Nodes,
    path: &str,
    now: Option<SystemTime>,
    limits: &Limits,
) -> Result<Inspected, Vec<Read>> {
    let clock = server_time(nodes, now);
    let view = View::new(nodes, clock, limits);
    let found = recognise(&view, path);
    let missing = view.missing();
    if !missing.is_empty() {
        return Err(missing);
    }
    let report = Report {
        path: path.to_owned(),
        writers: found.writers(),
        recipe: found.recipe,
        may_be: found.may_be,
        refused: view.refused(),
        left_out: view.left_out(),
        as_of_zxid: view.newest_zxid(),
        clock,
    };
    Ok(Inspected { report, reads: view.touched(), skipped: view.skipped() })
}

/// Returns the time that ages are relative to. It is never before the newest time that was seen.
pub(super) fn server_time(nodes: &Nodes, now: Option<SystemTime>) -> Option<ServerTime> {
    let newest = nodes.newest();
    match (now, newest) {
        (Some(now), newest) => Some(ServerTime {
            now: newest.map_or(now, |newest| newest.max(now)),
            source: TimeSource::OwnNode,
        }),
        (None, Some(now)) => Some(ServerTime { now, source: TimeSource::NewestStat }),
        (None, None) => None,
    }
}

impl fmt::Debug for Inspector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "Inspector", "", &self.client).field("limits", &self.limits).finish_non_exhaustive()
    }
}
