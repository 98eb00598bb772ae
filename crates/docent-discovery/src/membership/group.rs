use super::{Member, Members, MembershipBuilder};
use bytes::Bytes;
use docent_core::recipe::{InOperation, debug_handle};
use docent_core::{ChildrenCache, Client, Error};
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::watch;

/// A group that processes join and leave, such as the hosts of a cluster.
///
/// # Expected flow
/// Each process [joins](Self::join) with an id and some data, such as its address, and leaves when it stops.
/// Any process can follow the [members](Self::members), even without joining. The layout is that of Curator's
/// `GroupMember`: an ephemeral node for each member, named by its id. Cheap to clone.
///
/// # Guarantees
/// - A member stays in the group until it leaves: its node is re-created in a new session, and if another
///   client deletes it.
/// - The node of another client with the same id is never touched. A restarted process waits until its
///   predecessor's node is deleted.
/// - A member that leaves or is dropped leaves no node behind. After a crash, the member's node is deleted
///   when its session ends.
/// - The list of a `Membership` always contains its own members, as in Curator.
///
/// # Caveats
/// Two processes that read the list at the same time may see different lists. To agree on who does what, use
/// an election or a lock.
///
/// # Examples
/// ```no_run
/// # use futures_util::StreamExt;
/// # async fn example(client: docent_core::Client) -> Result<(), docent_core::Error> {
/// use docent_discovery::{MemberChange, Membership};
///
/// let cluster = Membership::new(&client, "/cluster/web")?;
/// let me = cluster.join("host-7", "10.0.0.7").await?;
/// let members = cluster.members().await?;
/// println!("{} of us", members.current().len());
/// let mut changes = members.changes();
/// while let Some(change) = changes.next().await {
///     if let MemberChange::Left(peer) = change? {
///         println!("{} left", peer.id);
///     }
/// }
/// me.leave().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Membership {
    pub(super) group: Arc<Group>,
}

pub(super) struct Group {
    pub(super) client: Client,
    pub(super) path: String,
    /// Ids that joined through this group, with their data.
    own: Mutex<BTreeMap<Arc<str>, Bytes>>,
    /// Number of members that left.
    pub(super) departures: watch::Sender<u64>,
    /// Cache shared by all lists.
    cache: Mutex<Weak<ChildrenCache>>,
}

impl Group {
    pub(super) fn own(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Bytes>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes a member from the group's own members.
    pub(super) fn leave(&self, id: &str) {
        self.own().remove(id);
        self.departures.send_modify(|departures| *departures += 1);
    }

    fn cache(&self) -> Result<Arc<ChildrenCache>, Error> {
        let mut running = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cache) = running.upgrade() {
            return Ok(cache);
        }
        let cache = Arc::new(ChildrenCache::new(&self.client, &self.path)?);
        *running = Arc::downgrade(&cache);
        Ok(cache)
    }
}

impl Membership {
    /// Creates the group at `path`, which need not exist yet. Does not join it.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule or is the root.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Self::builder(client, path).build()
    }

    /// Returns a builder for a group with its own settings.
    pub fn builder(client: &Client, path: &str) -> MembershipBuilder {
        MembershipBuilder::new(client, path)
    }

    pub(super) fn at(client: Client, path: String) -> Self {
        let (own, departures, cache) = (Mutex::default(), watch::Sender::new(0), Mutex::default());
        Self { group: Arc::new(Group { client, path, own, departures, cache }) }
    }

    /// Returns the path as given.
    pub fn path(&self) -> &str {
        &self.group.path
    }

    /// Joins the group, waiting until the node exists. If another session has a node with the same id, such
    /// as that of this process before a restart, waits until that node is deleted, for at most two session
    /// timeouts.
    ///
    /// # Errors
    /// `InvalidInput` if the id is not the name of a node (empty, or with a `/`), `TooLarge`,
    /// `AlreadyRegistered` if this client has already joined with that id, `NodeExists` if the other node
    /// stays, `NoAuth`, `Timeout`, `Closed`. Nothing is left behind in any of these cases.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn join<D: Into<Bytes>>(
        &self,
        id: &str,
        data: D,
    ) -> impl Future<Output = Result<Member, Error>> + Send + use<D> {
        let (group, id, data) = (Arc::clone(&self.group), id.to_owned(), data.into());
        async move { Member::join(&group, &id, data).await.in_operation("join") }
    }

    /// Like [`join`](Self::join), with the same data as Curator's members: the identity that the client was
    /// built with, by default its local address ([`default_data`](docent_core::Client::default_data)).
    ///
    /// # Errors
    /// Same as [`join`](Self::join).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn join_by_identity(&self, id: &str) -> impl Future<Output = Result<Member, Error>> + Send + use<> {
        let identity = self.group.client.default_data().to_owned();
        self.join(id, identity)
    }

    /// Returns a live list of the members, waiting until they were read once, for at most the operation
    /// timeout.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn members(&self) -> impl Future<Output = Result<Members, Error>> + Send + use<> {
        let group = Arc::clone(&self.group);
        async move {
            let cache = group.cache().in_operation("members")?;
            cache.ready().await.in_operation("members")?;
            Ok(Members::new(group, cache))
        }
    }
}

impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "Membership", self.path(), &self.group.client)
            .field("own", &self.group.own().keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
