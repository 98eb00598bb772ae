use super::clock::Clock;
use super::reader::complete;
use super::tree::Tree;
use super::{InspectorBuilder, Limits, Survey};
use crate::live::{Feeds, Reports, Surveys};
use crate::nodes::{Nodes, Read, View};
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
    pub(crate) client: Client,
    pub(crate) limits: Limits,
    clock: Arc<Clock>,
    pub(crate) feeds: Arc<Feeds>,
}

/// A report, with the reads that it is based on.
pub(crate) struct Inspected {
    pub(crate) report: Report,
    pub(crate) reads: Vec<Read>,
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
        Self { client, limits, clock: Arc::new(clock), feeds: Arc::default() }
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
        async move {
            let (now, mut tree) = (inspector.now().await, Tree::only(&path, &inspector.limits));
            complete(&inspector, &mut tree, now).await?;
            Ok(tree.report().expect("a complete tree has a report on its root").as_ref().clone())
        }
    }

    /// Reports on every recipe at `root` and below it. Nodes inside a recipe, such as the contenders of a
    /// lock, are not separate recipes. ZooKeeper's own nodes below `/zookeeper`, and nodes
    /// that clients keep for themselves in folders named `_docent`, are skipped.
    ///
    /// At the [limit of nodes](Limits::nodes), the walk omits whole recipes: every listed recipe has all the
    /// nodes that its state needs. [`LeftOut::nodes`](crate::LeftOut::nodes) is a lower bound of the nodes
    /// omitted. Only a recipe at `root` itself is reported as far as it was read. Beyond
    /// [`data_bytes`](Limits::data_bytes), listed recipes may lack data.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn walk(&self, root: &str) -> impl Future<Output = Result<Survey, Error>> + Send + use<> {
        let (inspector, root) = (self.clone(), root.to_owned());
        async move {
            let (now, mut tree) = (inspector.now().await, Tree::below(&root, &inspector.limits));
            complete(&inspector, &mut tree, now).await?;
            Ok(tree.survey(now))
        }
    }

    /// Follows one path: yields its current report, and a new one after each change. A change of ages alone
    /// does not count.
    ///
    /// One persistent recursive watch on the path reports changes, of which those in quick succession are
    /// merged. While nothing changes, the client sends only pings. After a lost connection the report is
    /// stale until everything that changed meanwhile was read again. All streams of an inspector and its
    /// clones on one path share the watch, the reads and the report. The stream ends when the client is
    /// closed.
    ///
    /// # Caveats
    /// - Servers before ZooKeeper 3.6 close the link once when they are asked for a persistent watch.
    ///   One-shot watches then follow the path, up to a [limit](Limits::watches), and the other nodes are
    ///   [polled](Limits::look_every).
    /// - Servers do not report changes of permissions, and new ones (3.8.4, 3.9.2) report nothing about nodes
    ///   that this client may not read. The inspector retries refused nodes every 30 s, and lists their
    ///   parents again. It notices a new node that it may not read only when a sibling is created or deleted,
    ///   or after a reconnect.
    ///
    /// # On drop
    /// The last stream removes the watch at the server.
    pub fn watch(&self, path: &str) -> Reports {
        Reports::new(self, path)
    }

    /// Follows all recipes at `root` and below it, as [`walk`](Self::walk) finds them: yields all current
    /// ones, and then each recipe that changes. Changes of ages alone, and of nodes that are not recipes, do
    /// not count.
    ///
    /// Watches work as for [`watch`](Self::watch). All streams of an inspector and its clones on one root
    /// share one walk, one watch at the server and one copy of the reports, so a service keeps one
    /// inspector for all of its users. A stream that is not polled holds no changes in memory: it skips
    /// intermediate reports, and yields a new [`Snapshot`](crate::SurveyEvent::Snapshot) if it has missed a
    /// deletion. The ages in a report are those at the time of its own [`clock`](Report::clock).
    ///
    /// # On drop
    /// The last stream removes the watch at the server.
    pub fn watch_below(&self, root: &str) -> Surveys {
        Surveys::new(self.clone(), root.to_owned(), None)
    }

    /// Returns the time by the servers' clock, if a node may be created for it.
    pub(crate) async fn now(&self) -> Option<SystemTime> {
        self.clock.now(&self.client).await
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
        part_of: found.part_of,
        refused: view.refused(),
        left_out: view.left_out(),
        as_of_zxid: view.newest_zxid(),
        clock,
    };
    Ok(Inspected { report, reads: view.touched() })
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
