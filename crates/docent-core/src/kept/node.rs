use super::reconcile::Reconciler;
use super::{
    Desired, FinalData, KeptStatus, Preparation, Progress, ReadChoice, Shown, TaskChannels, sequential,
};
use crate::client::{Client, Stage, refuse_reserved};
use crate::error::{Error, ErrorKind};
use crate::guard::Released;
use crate::node::{CreateMode, NodePath};
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// A node that is kept present with given data until it is removed. It is ephemeral, or of any mode if
/// created with the [builder](Self::builder). It corresponds to Curator's `PersistentNode` and
/// `PersistentTtlNode`.
///
/// A task creates the node, and restores it after a lost session, a deletion or a change by another client. A
/// sequential node is re-created with its original number.
///
/// **Ephemeral** nodes end with their session, and the task re-creates the node in the next session. If the
/// node of the older session still exists, the task replaces it in one transaction, which fails if the older
/// session has ended. Without this check, the task could replace a node that another client has created at
/// the path since then. The transaction checks an ephemeral node of the older session, in a folder called
/// `_docent`. If the older session has no such node, the task waits until the servers delete the older node.
/// A node of another client is left alone, and the task waits until that node is deleted. For example, a
/// restarted process waits until the session of the process before the restart expires.
///
/// **Persistent** nodes, containers and nodes with a time to live belong to no session. If a node exists at
/// the path, the task adopts it and writes the data. Therefore only one process at a time should keep such a
/// node. If another client keeps changing the node, the task restores the data after pauses that grow up to
/// 10 s. The node remains when the process dies.
///
/// A node **with a time to live** is kept alive by a child `touch`, as in Curator, which is written three
/// times within that time. When no process keeps the node any more, the servers delete it after that time. By
/// default they check for such nodes once a minute.
///
/// # On drop
/// The node is removed in the background, even if it belongs to no session. If the client is closed, only
/// ephemeral nodes are removed.
///
/// # Examples
/// ```no_run
/// # use docent_core::{Client, CreateMode};
/// # use docent_core::recipe::KeptNode;
/// # async fn example(client: Client) -> Result<(), docent_core::Error> {
/// let here = KeptNode::builder(&client, "/workers/w-")
///     .data("10.0.0.7")
///     .mode(CreateMode::EphemeralSequential)
///     .keep()
///     .await?;
/// here.present().await?;
/// println!("kept as {}", here.path());
/// here.set("10.0.0.8");
/// here.remove().await?;
/// # Ok(()) }
/// ```
#[must_use = "the node is removed when this is dropped"]
pub struct KeptNode {
    // Keeps the client open for as long as the node is wanted.
    client: Client,
    path: String,
    wanted: watch::Sender<Desired>,
    status: watch::Receiver<KeptStatus>,
    progress: watch::Receiver<Progress>,
}

impl KeptNode {
    /// Returns a builder for a node at `path` of any mode, including sequential ones.
    pub fn builder(client: &Client, path: impl Into<String>) -> KeptNodeBuilder {
        let (client, path, desired) = (client.clone(), path.into(), Desired::new());
        KeptNodeBuilder { client, path, base: None, takes_over: false, desired }
    }

    /// Starts keeping an ephemeral node at `path` with `data`. Parents are created on demand.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule or is [reserved](NodePath::of_recipe), `AlreadyRegistered` if
    /// this client already keeps a node at the path, `Closed`.
    pub fn new(client: &Client, path: &str, data: impl Into<Bytes>) -> Result<Self, Error> {
        Self::builder(client, path).data(data).start()
    }

    /// Waits until a node that this client is removing at `path` is deleted, at most for the operation
    /// timeout. Then a new node can be kept there. Returns immediately if no node is kept there, or if the
    /// node is not being removed.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule; `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn wait_vacant(client: &Client, path: &str) -> Result<(), Error> {
        let shared = client.shared();
        let full = shared.namespace.full("create", path)?;
        let error = |kind| Error::new(kind, "create").at(path);
        tokio::select! {
            biased;
            () = shared.closing.cancelled() => Err(error(shared.closed())),
            vacated = tokio::time::timeout_at(client.deadline(), shared.kept.vacated(&full)) => {
                vacated.map_err(|_| error(ErrorKind::Timeout))
            }
        }
    }

    /// The path as given; for a sequential node with its number.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Changes the wanted data, unless the node's [removal was requested](Self::request_removal).
    pub fn set(&self, data: impl Into<Bytes>) {
        self.wanted.send_if_modified(|desired| {
            let is_wanted = desired.data.is_some();
            if is_wanted {
                desired.data = Some(data.into());
                desired.number += 1;
            }
            is_wanted
        });
    }

    /// Sets or clears the final data of an ephemeral node, and the period for which that data is shown. The
    /// client's [shutdown](Client::shutdown) writes the data into the node, and removes the node after the
    /// period, if the shutdown's time limit permits. With a period of zero, it removes the node immediately.
    pub fn set_final_data(&self, final_data: Option<(Bytes, Duration)>) {
        self.wanted.send_if_modified(|desired| {
            desired.final_data = final_data.map(|(data, period)| FinalData { data, period });
            false
        });
    }

    /// Returns which data other clients [have chosen](KeptNodeBuilder::let_others_choose).
    pub fn shown(&self) -> Shown {
        self.progress.borrow().shown
    }

    /// Stops re-creating the node after its session ends or another client deletes the node. If the node is
    /// not present yet, it is removed.
    pub fn do_not_recreate(&self) {
        // A second call must not wake the task, which would report the same status again.
        self.wanted.send_if_modified(|desired| std::mem::replace(&mut desired.recreate, false));
    }

    /// The current known state of the node.
    pub fn status(&self) -> KeptStatus {
        self.status.borrow().clone()
    }

    /// Waits for the next status change that this handle has not seen. Returns `None` after the last one: the
    /// node was removed, or the client is closed.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn changed(&mut self) -> Option<KeptStatus> {
        // The task ends after it has reported the removal, or with the client.
        self.status.changed().await.ok()?;
        Some(self.status.borrow_and_update().clone())
    }

    /// Waits until the node is present with the data wanted last, at most for the operation timeout.
    ///
    /// # Errors
    /// If known, the reason why the node cannot be created: the error of the last attempt with that data, or
    /// `NodeExists` if another client's node is at the path. Otherwise `Timeout` or `Closed`. The node
    /// remains wanted. `Closed` also if its [removal was requested](Self::request_removal).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn present(&self) -> Result<(), Error> {
        let error = |kind| Error::new(kind, "create").at(&self.path);
        let wanted = self.wanted.borrow().number;
        let settled = settled(self.status.clone(), self.progress.clone(), wanted);
        match tokio::time::timeout_at(self.client.deadline(), settled).await {
            Ok(KeptStatus::Failing(error)) => Err(error),
            Ok(KeptStatus::Present { .. }) => Ok(()),
            Ok(_) => Err(error(ErrorKind::Closed)),
            Err(_) => Err(match self.status() {
                KeptStatus::Occupied { session_id } => occupied(&self.path, session_id),
                _ => error(ErrorKind::Timeout),
            }),
        }
    }

    /// Requests the permanent removal of the node in the background, as if this handle were dropped, even if
    /// other references to the handle exist.
    pub fn request_removal(&self) {
        self.wanted.send_modify(|desired| desired.data = None);
    }

    /// Removes the node and waits until it is deleted, at most for the operation timeout. Returns
    /// [`Released::Pending`] if that takes longer: the removal continues in the background.
    ///
    /// # Errors
    /// The last refusal, such as `NoAuth`, if the servers refused the removal until the timeout: the removal
    /// continues in the background. `Closed`: an ephemeral node is deleted with its session, others remain.
    /// `NotEmpty` if a node that belongs to no session has children: the removal continues in the background,
    /// and succeeds once the children are deleted.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the removal continues in the background.
    pub async fn remove(self) -> Result<Released, Error> {
        self.request_removal();
        match self.removed().await {
            Ok(()) => Ok(Released::Done),
            Err(error) if error.kind() == ErrorKind::Timeout => Ok(Released::Pending),
            Err(error) => Err(error),
        }
    }

    /// Waits until a node whose [removal was requested](Self::request_removal) is deleted, at most for the
    /// operation timeout.
    ///
    /// # Errors
    /// Same as [`remove`](Self::remove). Also `Timeout` if the node was not deleted in time: the removal
    /// continues in the background.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn removed(&self) -> Result<(), Error> {
        let mut status = self.status.clone();
        let removed = status.wait_for(|status| match status {
            KeptStatus::Failing(error) => error.kind() == ErrorKind::NotEmpty,
            status => matches!(status, KeptStatus::Removed),
        });
        let error = |kind| Error::new(kind, "remove").at(&self.path);
        match tokio::time::timeout_at(self.client.deadline(), removed).await {
            Ok(Ok(status)) => match &*status {
                KeptStatus::Failing(error) => Err(error.clone()),
                _ => Ok(()),
            },
            Ok(Err(_)) => Err(error(ErrorKind::Closed)),
            // After a refusal, waiting would not help.
            Err(_) => match self.status() {
                KeptStatus::Failing(refusal) if !refusal.is_retryable() => Err(refusal),
                _ => Err(error(ErrorKind::Timeout)),
            },
        }
    }
}

// The wanted data is not printed here, nor in the other `Debug` implementations of this module.
impl fmt::Debug for KeptNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptNode")
            .field("path", &self.path)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

pub(super) fn occupied(path: &str, session_id: i64) -> Error {
    Error::new(ErrorKind::NodeExists, "create")
        .at(path)
        .because(format!("the node belongs to session {session_id:#x}"))
}

/// Settings of a [`KeptNode`].
#[derive(Clone)]
#[must_use = "a builder does nothing until `start` or `keep` is called"]
pub struct KeptNodeBuilder {
    client: Client,
    path: String,
    base: Option<String>,
    takes_over: bool,
    /// Other settings, and the data. The mode is as given.
    desired: Desired,
}

/// Minimum time to live: the node is touched three times within it.
const LEAST_TTL: Duration = Duration::from_secs(1);

impl KeptNodeBuilder {
    /// Sets the data to keep; empty by default.
    pub fn data(mut self, data: impl Into<Bytes>) -> Self {
        self.desired.data = Some(data.into());
        self
    }

    /// Sets the mode, [`Ephemeral`](CreateMode::Ephemeral) by default. A time to live must be at least one
    /// second.
    pub fn mode(mut self, mode: CreateMode) -> Self {
        self.desired.mode = mode;
        self
    }

    /// Sets the label of the node's purpose, `kept_node` by default. The client's
    /// [shutdown](Client::shutdown) reports this label if it cannot remove the node.
    pub fn label(mut self, kind: &'static str) -> Self {
        self.desired.kind = kind;
        self
    }

    /// Marks a node that exists only for one step of a recipe. Its normal changes are logged at debug level.
    pub fn brief(mut self) -> Self {
        self.desired.brief = true;
        self
    }

    /// Creates missing parents only below `base`, which is a parent of the node. While `base` does not exist,
    /// the node's status is [`Failing`](KeptStatus::Failing) with `NoNode`, and the task waits for `base`.
    /// The client's [health](Client::health) and its metrics of kept nodes ignore such a node. By default,
    /// all missing parents are created. Not for sequential nodes.
    pub fn below(self, base: impl Into<String>) -> Self {
        Self { base: Some(base.into()), ..self }
    }

    /// Takes over an ephemeral node that this client is about to remove at the path.
    ///
    /// If the previous handle was dropped or [removed](KeptNode::remove), its node is not deleted but kept
    /// for the new handle, without a gap. If the deletion is already in flight, the node is re-created. The
    /// previous handle reports its node as removed. [`start`](Self::start) then fails with
    /// `AlreadyRegistered` only if this client's node there is not being removed, or has another mode.
    pub fn take_over(self) -> Self {
        Self { takes_over: true, ..self }
    }

    /// Runs `preparation`, if there is one, before data is written that differs from the data prepared last.
    /// Dropping the handle or changing the data cancels the work. Once the `Arc` is dropped, running work
    /// continues, and later data is written without preparation. At the client's shutdown, the final data is
    /// written only if the data wanted last was prepared.
    pub fn preparation(mut self, preparation: Option<&Arc<Preparation>>) -> Self {
        self.desired.preparation = preparation.map(Arc::downgrade);
        self
    }

    /// Lets other clients choose whether an ephemeral node shows its data or its [final
    /// data](KeptNode::set_final_data): `read` returns the choice in data that another client wrote. The node
    /// then shows the data or final data of this handle, never what the other client wrote. A choice lasts
    /// across sessions and calls of [`set`](KeptNode::set), until the next choice or until the handle is
    /// dropped. By default, if `read` returns `None`, or if no final data is set, the task restores what the
    /// handle and the last choice require.
    pub fn let_others_choose(mut self, read: ReadChoice) -> Self {
        self.desired.read_choice = Some(read);
        self
    }

    /// Starts keeping a node that is not sequential. The node is created in the background, and
    /// [`present`](KeptNode::present) waits for it.
    ///
    /// # Errors
    /// `InvalidInput` if a path or the time to live breaks a rule, the path is
    /// [reserved](NodePath::of_recipe), or the mode is sequential; `AlreadyRegistered` if this client already
    /// keeps a node at the path; `Closed`.
    pub fn start(self) -> Result<KeptNode, Error> {
        let mode = self.desired.mode;
        if mode.to_proto().0.is_sequential() {
            let detail = format!("a node of mode {mode:?} needs `keep`");
            return Err(Error::invalid_input("create", detail).at(&self.path));
        }
        self.enter()
    }

    /// Starts keeping the node. Parents are created on demand.
    ///
    /// A sequential node is created first, exactly once, to obtain its number. Any other node is created in
    /// the background, as by [`start`](Self::start).
    ///
    /// # Errors
    /// Same as [`start`](Self::start). For a sequential node also the errors of [`create`](Client::create).
    /// For a sequential node that belongs to no session, `OutcomeUnknown` means that the node may have been
    /// created.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    ///
    /// Exception: for a sequential node that belongs to no session, this method is *not* cancel safe: the
    /// node may have been created, and then remains.
    pub async fn keep(mut self) -> Result<KeptNode, Error> {
        // Before a sequential node is created.
        self.check()?;
        let (client, mode) = (&self.client, self.desired.mode);
        let data = || self.desired.data.clone().unwrap_or_default();
        match mode {
            CreateMode::EphemeralSequential => {
                self.path = client.create(&self.path, data(), mode).await?.path;
            }
            _ if mode.to_proto().0.is_sequential() => {
                self.path = Box::pin(sequential::create(client, &self.path, &data(), mode)).await?;
            }
            _ => {}
        }
        self.enter()
    }

    /// Checks the settings.
    fn check(&self) -> Result<(), Error> {
        let Self { client, path, base, desired: Desired { mode, .. }, .. } = self;
        let refuse = |detail| Err(Error::invalid_input("create", detail).at(path));
        if let Some(ttl) = mode.ttl().filter(|ttl| *ttl < LEAST_TTL || mode.bad_ttl().is_some()) {
            return refuse(format!("time to live {ttl:?} must be from 1 s to 2^40 ms"));
        }
        let is_parent = |base: &str| {
            let rest = path.strip_prefix(base).filter(|_| !base.is_empty());
            base == "/" || rest.is_some_and(|rest| rest.starts_with('/'))
        };
        if base.is_some() && mode.to_proto().0.is_sequential() {
            return refuse(format!("a node of mode {mode:?} cannot be kept below a base"));
        }
        if let Some(base) = base.as_ref().filter(|base| !is_parent(base)) {
            return refuse(format!("base {base:?} must be a parent of the node"));
        }
        refuse_reserved(client, "create", path)
    }

    /// Starts the task of the node, or hands the node over to this handle.
    fn enter(self) -> Result<KeptNode, Error> {
        self.check()?;
        let Self { client, path, base, takes_over, mut desired } = self;
        let shared = client.shared();
        let full = shared.namespace.join(NodePath::of_recipe(&client, "create", &path)?.as_str());
        if shared.refuses(Stage::Drain) {
            return Err(Error::new(ErrorKind::Closed, "create").at(&path));
        }
        desired.mode = desired.mode.without_sequence();
        desired.base = base.map(|base| shared.namespace.join(&base).into());
        let (wanted, desired) = watch::channel(desired);
        let channels = TaskChannels::new(desired);
        let (status, progress) = (channels.status.subscribe(), channels.progress.subscribe());
        let entered = shared.kept.enter(&full, channels, takes_over);
        // No channels are returned if a task serves the node already.
        if let Some(channels) = entered.map_err(|error| error.at(&path))? {
            let (parents, own) = (client.parents(), Arc::clone(shared));
            let task = Reconciler::new(own, path.clone(), full, parents, channels);
            shared.tasks.spawn_on(task.run(), &shared.runtime);
        }
        Ok(KeptNode { client, path, wanted, status, progress })
    }
}

// The data is not printed.
impl fmt::Debug for KeptNodeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptNodeBuilder")
            .field("path", &self.path)
            .field("mode", &self.desired.mode)
            .finish_non_exhaustive()
    }
}

/// Waits until the request with the number `wanted` is fulfilled or has failed, or the node is removed.
async fn settled(
    mut status: watch::Receiver<KeptStatus>,
    mut progress: watch::Receiver<Progress>,
    wanted: u64,
) -> KeptStatus {
    loop {
        // The task changes its progress after the status that belongs to it, so this status is no older.
        let Progress { fulfilled, refused, .. } = *progress.borrow_and_update();
        let known = status.borrow_and_update().clone();
        match known {
            KeptStatus::Present { .. } if fulfilled >= wanted => return known,
            KeptStatus::Removed => return known,
            // The failure of an earlier request says nothing about this one.
            KeptStatus::Failing(_) if refused >= wanted => return known,
            _ => {}
        }
        tokio::select! {
            // The task ends after it has reported the removal, or with the client.
            changed = status.changed() => if changed.is_err() { return status.borrow().clone() },
            Ok(()) = progress.changed() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn failing(kind: ErrorKind) -> KeptStatus {
        KeptStatus::Failing(Error::new(kind, "create"))
    }

    #[tokio::test]
    async fn the_error_is_that_of_the_request_and_not_of_an_earlier_one() {
        let status = watch::Sender::new(failing(ErrorKind::NoAuth));
        let progress = watch::Sender::new(Progress { refused: 1, ..Progress::default() });
        let mut settled = std::pin::pin!(settled(status.subscribe(), progress.subscribe(), 2));
        assert!(settled.as_mut().now_or_never().is_none());
        status.send_replace(failing(ErrorKind::TooLarge));
        assert!(settled.as_mut().now_or_never().is_none(), "the failure is not recorded yet");
        progress.send_modify(|progress| progress.refused = 2);
        let KeptStatus::Failing(error) = settled.await else { panic!("the request must have failed") };
        assert_eq!(error.kind(), ErrorKind::TooLarge);
    }
}
