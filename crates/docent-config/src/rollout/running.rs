use super::readers::{Applied, folder};
use crate::{Revision, Snapshot};
use docent_core::recipe::{KeptNode, KeptStatus, NodePath, VersionedNode, full_error, spawn};
use docent_core::{Client, CreateMode, Error, ErrorKind};
use std::fmt;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

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
///   warning and retries.
/// - [`Config::delete`](crate::Config::delete) deletes the nodes of all readers together with the value. The
///   readers are reported again once a value is published.
///
/// # Assumptions
/// Each process has its own id. A process with the id of another process is reported once the other process
/// has ended. A process that was killed and restarted waits for the end of its previous session.
///
/// # Caveats
/// - Each reader writes once per revision, and each console reads each changed node.
/// - If the value is deleted while the node is being created, the value's node may be re-created without
///   data. The next publish replaces it.
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
/// apply(&subscription.current());
/// running.set(&subscription.current());
/// while let Some(change) = subscription.changed().await {
///     if let Ok(Change::Value(limits)) = change {
///         apply(&limits);
///         running.set(&limits);
///     }
/// }
/// # Ok(()) }
/// ```
#[must_use = "the report ends when this is dropped"]
pub struct Running {
    path: String,
    applied: watch::Sender<Option<Revision>>,
    /// Ends the task.
    _task: DropGuard,
}

impl Running {
    /// Starts to report as the reader `id`.
    pub(crate) fn start(versioned: &VersionedNode, id: &str) -> Result<Self, Error> {
        if id.is_empty() || id.contains('/') {
            let detail = format!("reader id {id:?} must be one segment of a path");
            return Err(Error::invalid_input("report_as", detail));
        }
        let client = versioned.client();
        let folder = folder(versioned.path());
        let path: String = NodePath::of_recipe(client, "report_as", format!("{folder}/{id}"))?.into();
        let (sender, applied) = watch::channel(None);
        let abandoned = CancellationToken::new();
        let reporter =
            Reporter { client: client.clone(), folder, path: path.clone(), applied, last_refusal: None };
        let token = abandoned.clone();
        spawn(client, async move {
            token.run_until_cancelled(reporter.run()).await;
        });
        Ok(Self { path, applied: sender, _task: abandoned.drop_guard() })
    }

    /// Returns the path of the node.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Reports that this process now runs `snapshot`. The node is written in the background; if no server
    /// answers, as soon as one does. Setting the same revision again writes nothing.
    ///
    /// A value from the local [snapshot file](crate::ConfigBuilder::snapshot_file) is reported with the
    /// revision that it had at the servers. The [default](crate::ConfigBuilder::default_value) has no
    /// revision: after it was set, there is no node.
    pub fn set<T>(&self, snapshot: &Snapshot<T>) {
        let revision = snapshot.revision();
        self.applied.send_if_modified(|applied| std::mem::replace(applied, revision) != revision);
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("path", &self.path)
            .field("applied", &*self.applied.borrow())
            .finish_non_exhaustive()
    }
}

/// Pause after the node could not be created.
const PAUSE: Duration = Duration::from_secs(5);

struct Reporter {
    client: Client,
    folder: String,
    path: String,
    applied: watch::Receiver<Option<Revision>>,
    /// Kind of the last refusal, which is logged once.
    last_refusal: Option<ErrorKind>,
}

impl Reporter {
    /// Keeps the node while a revision is set, until the client is closed.
    async fn run(mut self) {
        let mut state = self.client.state();
        loop {
            let revision = tokio::select! {
                revision = self.wanted() => revision,
                _ = state.wait_for(|_| false) => return,
            };
            let Some(revision) = revision else { return };
            if let Err(error) = self.keep(&revision).await {
                self.note(&error);
                tokio::select! {
                    () = tokio::time::sleep(PAUSE) => {}
                    _ = self.applied.changed() => {}
                    _ = state.wait_for(|_| false) => return,
                }
            }
        }
    }

    /// Waits until a revision is set. Returns `None` once the handle was dropped.
    async fn wanted(&mut self) -> Option<Revision> {
        *self.applied.wait_for(Option::is_some).await.ok()?
    }

    /// Keeps the node until its session ends, another client deletes it, or no revision is set.
    async fn keep(&mut self, revision: &Revision) -> Result<(), Error> {
        self.create_folder().await?;
        let node = KeptNode::take_over(&self.client, &self.path, Applied::from(revision).to_data())?;
        let mut node = node.labelled("running");
        loop {
            tokio::select! {
                status = node.changed() => match status {
                    // A kept node would create missing parents. Therefore the next node is created here.
                    Some(KeptStatus::Present { .. }) => {
                        self.last_refusal = None;
                        node.do_not_recreate();
                    }
                    Some(KeptStatus::Removed) => return Ok(()),
                    Some(_) => {}
                    None => return Err(Error::closed("report_as", &self.path)),
                },
                changed = self.applied.changed() => {
                    let revision = *self.applied.borrow_and_update();
                    match revision.filter(|_| changed.is_ok()) {
                        Some(revision) => node.set(Applied::from(&revision).to_data()),
                        None => return Ok(()),
                    }
                }
            }
        }
    }

    /// Creates the folder of the readers if it is missing. A transaction creates no parents, so a value that
    /// was deleted is not re-created.
    async fn create_folder(&self) -> Result<(), Error> {
        if self.client.exists(&self.folder).await?.is_some() {
            return Ok(());
        }
        let create = self.client.transaction().create(&self.folder, "", CreateMode::Persistent);
        match create.commit().await {
            Err(error) if error.kind() != ErrorKind::NodeExists => Err(error),
            _ => Ok(()),
        }
    }

    /// Logs why the node cannot be created, unless the reason is temporary.
    fn note(&mut self, error: &Error) {
        let kind = error.kind();
        let is_known = self.last_refusal.replace(kind) == Some(kind);
        let is_expected = matches!(kind, ErrorKind::NoNode | ErrorKind::Closed | ErrorKind::OutcomeUnknown);
        if is_known || is_expected || error.is_retryable() {
            return;
        }
        // Event: This process cannot report which revision of a configuration it runs. Its subscriptions are
        // not affected.
        // Action: Grant the client CREATE on the value's node, or on its `_running` folder if that exists. If
        // the error is `AlreadyRegistered`, give each reader of the client its own id.
        tracing::warn!(target: "docent::config", client = %self.client.label(), error = %full_error(&self.client, error), "cannot report the applied revision; retrying");
    }
}
