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

/// Tells which recipe a path is and how it stands, whoever wrote it: Docent, Curator or kazoo.
///
/// # Expected flow
/// [`path`](Self::path) reports about one path, [`walk`](Self::walk) about all recipes below one, and
/// [`watch`](Self::watch) about one path whenever it changes. Cheap to clone.
///
/// # Guarantees
/// - Recipes are recognised by the names and the data of nodes alone. Where two recipes have one layout the
///   report names the [others](Report::may_be).
/// - Reads are bounded by [`Limits`], and what was left out is said.
/// - A node that may not be read is [named](Report::refused) and harms nothing else.
/// - Ages are counted by the servers' clock, never by the local one.
///
/// # Caveats
/// Nodes are read one after the other, from the server that this client talks to: a report is no snapshot,
/// and that server may lag behind.
#[derive(Clone)]
pub struct Inspector {
    pub(super) client: Client,
    pub(super) limits: Limits,
    clock: Arc<Clock>,
}

/// Report with the reads that it is made from.
pub(crate) struct Inspected {
    pub(crate) report: Report,
    pub(crate) reads: Vec<Read>,
    /// Number of nodes that were not looked for because of a limit.
    pub(crate) skipped: usize,
}

/// Result of a look at the servers, with all that it is made from.
pub(crate) struct Looked<T> {
    pub(crate) told: T,
    pub(crate) nodes: Nodes,
    /// Reads for each path that was looked at.
    pub(crate) reads: Vec<(String, Vec<Read>)>,
}

impl Inspector {
    /// An inspector with the default limits.
    pub fn new(client: &Client) -> Self {
        Self::builder(client).build()
    }

    /// Prepares an inspector with settings of its own.
    pub fn builder(client: &Client) -> InspectorBuilder {
        InspectorBuilder::new(client)
    }

    pub(super) fn with(client: Client, limits: Limits, clock: Clock) -> Self {
        Self { client, limits, clock: Arc::new(clock) }
    }

    /// Reports about one path. One without a node is [`Absent`](crate::Recipe::Absent), which is no error.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn path(&self, path: &str) -> impl Future<Output = Result<Report, Error>> + Send + use<> {
        let (inspector, path) = (self.clone(), path.to_owned());
        async move { Ok(inspector.inspect(&path, &mut Earlier::default()).await?.told) }
    }

    /// Reports about every recipe at `root` and below it, level by level. Nodes inside of a recipe, such as
    /// the contenders of a lock, are no recipes of their own; ZooKeeper's own nodes below
    /// `/zookeeper`, and those that clients keep for themselves in folders called `_docent`, are skipped.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn walk(&self, root: &str) -> impl Future<Output = Result<Survey, Error>> + Send + use<> {
        let (inspector, root) = (self.clone(), root.to_owned());
        async move { Ok(walk(&inspector, &root, &mut Earlier::default()).await?.told) }
    }

    /// Follows one path: its report now, and after each change. Ages alone are no change.
    ///
    /// It watches the nodes that the report is made from, by one-shot watches that are set again, as many as
    /// the [limit](Limits::watches) allows, and reads again what changed. `unwatched` of
    /// [`Live`](crate::Live) counts the other nodes, which are read again with the next change and
    /// [from time to time](Limits::look_every). Changes that follow each other quickly become one. While the
    /// servers are away the last report is told once more as stale. It ends when the client is closed.
    ///
    /// # On drop
    /// The watches at the server are removed.
    pub fn watch(&self, path: &str) -> Reports {
        Reports::new(self, path)
    }

    /// Follows all recipes at `root` and below it, as [`walk`](Self::walk) finds them: all of them now, and
    /// after each change of one. Ages alone are no change, and neither are nodes that are no recipes.
    ///
    /// It watches as [`watch`](Self::watch) does, the nodes near the root first.
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

    /// The time by the servers' clock, where a node may be made for it.
    pub(super) async fn now(&self) -> Option<SystemTime> {
        self.clock.now(&self.client).await
    }

    pub(crate) async fn inspect(&self, path: &str, earlier: &mut Earlier) -> Result<Looked<Report>, Error> {
        let now = self.now().await;
        let mut nodes = Nodes::default();
        loop {
            match look(&nodes, path, now, &self.limits) {
                Ok(Inspected { report, reads, .. }) => {
                    let reads = vec![(path.to_owned(), reads)];
                    return Ok(Looked { told: report, nodes, reads });
                }
                Err(missing) => read(&self.client, &self.limits, &mut nodes, earlier, missing).await?,
            }
        }
    }
}

/// Report about a path by nodes that were read.
///
/// # Errors
/// The reads that are missing.
pub(crate) fn look(
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

/// Time that ages are counted to: never before the newest time that was seen.
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
