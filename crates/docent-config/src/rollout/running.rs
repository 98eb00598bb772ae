use super::readers::{Applied, folder};
use crate::Snapshot;
use docent_core::recipe::{KeptNode, NodePath, VersionedNode};
use docent_core::{Client, Error, ParentKind};
use std::sync::{Mutex, PoisonError};

/// Reports which revision of a configuration this process runs, for the [console] and `docent inspect`.
/// Created by [`Config::report_as`](crate::Config::report_as).
///
/// The report is an ephemeral node `_running/<id>` below the value. The client writes it in the background,
/// and re-creates it in each new session.
///
/// # Guarantees
/// - The node has the last revision that was [set](Self::set). If revisions are set in quick succession, some
///   may be skipped.
/// - The node ends with the session of the process, or with this handle.
/// - The report affects no subscription and no publish. If the client may not create the node, it logs a
///   warning and retries. It never creates the value's own node.
/// - [`Config::delete`](crate::Config::delete) deletes the nodes of all readers together with the value. Once
///   a value is published again, each reader's client re-creates its node with the revision set last.
///
/// # Assumptions
/// Each process has its own id. If two processes use one id, the second is reported only after the session of
/// the first has ended. The same holds for a process that was killed and restarted.
///
/// # Caveats
/// Each reader writes once per revision, and each console reads each changed node.
///
/// # On drop
/// The node is removed in the background. The handle keeps the client open.
///
/// [console]: https://github.com/docent-rs/docent/blob/main/docs/guide/console.md
///
/// # Examples
/// ```no_run
/// # #[derive(serde::Serialize, serde::Deserialize)]
/// # struct Limits { per_second: u32 }
/// # fn apply(_: &Limits) {}
/// # async fn example(limits: docent_config::Config<Limits>) -> Result<(), docent_core::Error> {
/// use docent_config::Change;
///
/// let running = limits.report_as("web-1")?;
/// let mut subscription = limits.subscribe().await?;
/// let current = subscription.current();
/// apply(&current);
/// running.set(&current)?;
/// while let Some(change) = subscription.changed().await {
///     if let Ok(Change::Value(limits)) = change {
///         apply(&limits);
///         running.set(&limits)?;
///     }
/// }
/// # Ok(()) }
/// ```
#[must_use = "the report ends when this is dropped"]
#[derive(Debug)]
pub struct Running {
    client: Client,
    /// Path of the value.
    value: String,
    path: String,
    /// `None` if no revision is reported.
    node: Mutex<Option<KeptNode>>,
}

impl Running {
    /// Prepares to report as the reader `id`.
    pub(crate) fn new(versioned: &VersionedNode, id: &str) -> Result<Self, Error> {
        if id.is_empty() || id.contains('/') {
            let detail = format!("reader id {id:?} must be one segment of a path");
            return Err(Error::invalid_input("report_as", detail));
        }
        // A container would be deleted after the last reader, and the next one may not be allowed to create
        // it again.
        let client = versioned.client().with_parents(ParentKind::Persistent);
        let value = versioned.path().to_owned();
        let path = NodePath::of_recipe(&client, "report_as", format!("{}/{id}", folder(&value)))?.into();
        Ok(Self { client, value, path, node: Mutex::new(None) })
    }

    /// Returns the path of the node.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Reports that this process now runs `snapshot`. The client writes the node in the background, once a
    /// server answers. Setting the same revision again writes nothing.
    ///
    /// A value from the local [snapshot file](crate::ConfigBuilder::snapshot_file) is reported with the
    /// revision that it had at the servers. The [default](crate::ConfigBuilder::default_value) has no
    /// revision: setting it removes the node.
    ///
    /// # Errors
    /// `AlreadyRegistered` if this client reports with another handle as the same reader; `Closed`.
    pub fn set<T>(&self, snapshot: &Snapshot<T>) -> Result<(), Error> {
        let mut node = self.node.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(revision) = snapshot.revision() else {
            *node = None;
            return Ok(());
        };
        let data = Applied::from(&revision).to_data();
        match &*node {
            Some(node) => node.set(data),
            None => {
                let start = KeptNode::builder(&self.client, &self.path).data(data).label("running");
                // The value may be deleted, and must not be re-created by its readers.
                *node = Some(start.below(&self.value).take_over().start()?);
            }
        }
        Ok(())
    }
}
