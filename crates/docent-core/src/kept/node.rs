use super::life::Life;
use super::reconcile::Reconciler;
use super::{Desired, Farewell, KeptNodeBuilder, KeptStatus, TaskEnd};
use crate::client::{Client, Stage};
use crate::error::{Error, ErrorKind};
use crate::node::NodePath;
use crate::operation::Shared;
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Node that is kept present with given data until it is removed: an ephemeral one, or by its
/// [builder](Self::builder) one of any mode. For users of Curator: what `PersistentNode` and
/// `PersistentTtlNode` do.
///
/// One task makes the node as wanted, and again whenever it is not: after a lost session, a deletion or a
/// change by others. A sequential node is made again with the number that it got first.
///
/// Of **ephemeral** nodes, one that belongs to an older session of this client is replaced while that session
/// lives, which an ephemeral node of it in a folder called `_docent` proves. A node of somebody else is left
/// alone and waited for: a process that was restarted finds the node of its predecessor until that session
/// expires.
///
/// **Persistent** nodes, containers and those with a time to live belong to no session: one that is at the
/// path is taken for this one, and given the data. So it should be kept by one process at a time; where
/// others go on to change it, it is set again after pauses that grow up to 10 s. It stays when the process
/// dies. One **with a time to live** is kept by a child `touch`, as Curator does, which is written three
/// times in that time: once nobody keeps it, the servers delete it after that time, and look for such nodes
/// once a minute by default.
///
/// # On drop
/// The node is removed in the background, also one that belongs to no session. When the client is closed only
/// ephemeral ones go.
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
    /// Number of the last wish that was fulfilled.
    fulfilled: watch::Receiver<u64>,
    /// Number of the last wish that failed.
    refused: watch::Receiver<u64>,
}

impl KeptNode {
    /// Prepares a node of another mode, or one with a number, at `path`.
    pub fn builder(client: &Client, path: impl Into<String>) -> KeptNodeBuilder {
        KeptNodeBuilder::new(client, path.into())
    }

    /// Keeps an ephemeral node at `path` with `data`. Parents are created on demand.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule, `AlreadyRegistered` when this client keeps a node there
    /// already, `Closed`.
    pub fn new(client: &Client, path: &str, data: impl Into<Bytes>) -> Result<Self, Error> {
        Self::keep(client, path, data.into(), Life::EPHEMERAL)
    }

    /// Keeps a node with a life of any kind.
    pub(super) fn keep(client: &Client, path: &str, data: Bytes, life: Life) -> Result<Self, Error> {
        Self::enter(client, path, data, life, |shared, full, end| {
            shared.kept.enter(full, &end)?;
            Ok(Some(end))
        })
    }

    /// As [`new`](Self::new), also where this client is about to remove a node at the path, whose handle was
    /// dropped or [removed](Self::remove): it is not removed then but kept as this one, without being gone in
    /// between, unless its deletion is already on its way; then it is made anew. To the other handle it is
    /// removed.
    ///
    /// # Errors
    /// As [`new`](Self::new); `AlreadyRegistered` when this client keeps a node there that stays.
    pub fn take_over(client: &Client, path: &str, data: impl Into<Bytes>) -> Result<Self, Error> {
        let inherit = |shared: &Shared, full: &str, end| shared.kept.inherit(full, end);
        Self::enter(client, path, data.into(), Life::EPHEMERAL, inherit)
    }

    /// Keeps a node; `enter` gives the task's end back where there is no task yet.
    fn enter(
        client: &Client,
        path: &str,
        data: Bytes,
        life: Life,
        enter: impl FnOnce(&Shared, &str, TaskEnd) -> Result<Option<TaskEnd>, Error>,
    ) -> Result<Self, Error> {
        let shared = client.shared();
        let full = shared.namespace.join(NodePath::new("create", path)?.as_str());
        if shared.refuses(Stage::Drain) {
            return Err(Error::new(ErrorKind::Closed, "create").at(path));
        }
        let (wanted, wish) = watch::channel(Desired::new(data, life.mode()));
        let end = TaskEnd::new(wish);
        let (fulfilled, refused) = (end.progress.fulfilled.subscribe(), end.progress.refused.subscribe());
        let status = end.status.subscribe();
        if let Some(end) = enter(shared, &full, end).map_err(|error| error.at(path))? {
            let task = Reconciler::new(Arc::clone(shared), path.to_owned(), full, life, end);
            shared.tasks.spawn_on(task.run(), &shared.runtime);
        }
        Ok(Self { client: client.clone(), path: path.to_owned(), wanted, status, fulfilled, refused })
    }

    /// Waits until a node that this client is about to remove at `path` is removed, at most for the operation
    /// timeout: a new one can be kept there then. Returns at once when there is none, or one that stays.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule, `Timeout`, `Closed`.
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

    /// The path, as it was given; of a sequential node with its number.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Changes the wanted data, unless the node was told to [leave](Self::request_removal).
    pub fn set(&self, data: impl Into<Bytes>) {
        self.wanted.send_if_modified(|wish| {
            let stays = wish.data.is_some();
            if stays {
                wish.data = Some(data.into());
                wish.number += 1;
            }
            stays
        });
    }

    /// Labels what the node is for, `kept_node` by default: so the client's
    /// [shutdown](Client::shutdown) names it where it has to leave it behind.
    pub fn labelled(self, kind: &'static str) -> Self {
        self.wanted.send_if_modified(|wish| {
            wish.kind = kind;
            false
        });
        self
    }

    /// Sets the last words of an ephemeral node, or none: the client's [shutdown](Client::shutdown) writes
    /// `data` into it before it removes it, `period` later, if the time that it has allows for that.
    pub fn set_farewell(&self, farewell: Option<(Bytes, Duration)>) {
        self.wanted.send_if_modified(|wish| {
            wish.farewell = farewell.map(|(data, period)| Farewell { data, period });
            false
        });
    }

    /// Stops making the node anew: when it goes, with its session or by somebody else's hand, it is gone for
    /// good.
    pub fn do_not_recreate(&self) {
        self.wanted.send_modify(|wish| wish.anew = false);
    }

    /// The known state of the node now.
    pub fn status(&self) -> KeptStatus {
        self.status.borrow().clone()
    }

    /// Waits for the next status after the one this saw last; `None` after the last one, by which the node
    /// was removed or the client is closed.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn changed(&mut self) -> Option<KeptStatus> {
        // The task ends after it has said that the node is removed, or with the client.
        self.status.changed().await.ok()?;
        Some(self.status.borrow_and_update().clone())
    }

    /// Waits until the node is present with the data that was wanted last, at most for the operation timeout.
    ///
    /// # Errors
    /// Why it cannot be made, when that is known: the error of the last attempt with that data, `NodeExists`
    /// when somebody else's node is at the path; else `Timeout`, `Closed`. The node is wanted all the same.
    /// `Closed` also when it was told to [leave](Self::request_removal).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn present(&self) -> Result<(), Error> {
        let error = |kind| Error::new(kind, "create").at(&self.path);
        match tokio::time::timeout_at(self.client.deadline(), self.settled()).await {
            Ok(KeptStatus::Failing(error)) => Err(error),
            Ok(KeptStatus::Present { .. }) => Ok(()),
            Ok(_) => Err(error(ErrorKind::Closed)),
            Err(_) => Err(match self.status() {
                KeptStatus::Occupied { session_id } => occupied(&self.path, session_id),
                _ => error(ErrorKind::Timeout),
            }),
        }
    }

    /// Waits until it is present as it was wanted last, until that failed, or until it is removed.
    async fn settled(&self) -> KeptStatus {
        let (mut status, mut fulfilled) = (self.status.clone(), self.fulfilled.clone());
        let wanted = self.wanted.borrow().number;
        loop {
            let known = status.borrow_and_update().clone();
            let is_fulfilled = *fulfilled.borrow_and_update() >= wanted;
            match known {
                KeptStatus::Present { .. } if is_fulfilled => return known,
                KeptStatus::Removed => return known,
                // The failure of an earlier wish says nothing of the present one.
                KeptStatus::Failing(_) if *self.refused.borrow() >= wanted => return known,
                _ => {}
            }
            tokio::select! {
                // The task ends after it has said that the node is removed, or with the client.
                changed = status.changed() => if changed.is_err() { return status.borrow().clone() },
                Ok(()) = fulfilled.changed() => {}
            }
        }
    }

    /// Removes the node in the background, and for good: as if this was dropped, also where others still hold
    /// it.
    pub fn request_removal(&self) {
        self.wanted.send_modify(|wish| wish.data = None);
    }

    /// Removes the node and waits until it is gone, at most for the operation timeout.
    ///
    /// # Errors
    /// `Timeout` when no server could be reached in time: it is removed in the background. `Closed`: an
    /// ephemeral node goes with its session, others stay. `NotEmpty` when a node that belongs to no session
    /// has children: it is removed in the background once they are gone.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the removal goes on.
    pub async fn remove(self) -> Result<(), Error> {
        self.request_removal();
        self.removed().await
    }

    /// Waits until the node is gone that was told to [leave](Self::request_removal), at most for the
    /// operation timeout.
    ///
    /// # Errors
    /// As [`remove`](Self::remove).
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
            Err(_) => Err(error(ErrorKind::Timeout)),
        }
    }
}

// The wanted data is not printed, here and below.
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
        .because(format!("it belongs to session {session_id:#x}"))
}
