use super::{Member, Members};
use bytes::Bytes;
use docent_core::recipe::{NodePath, debug_handle};
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
/// Anybody follows the [members](Self::members), also without joining. The layout is that of Curator's
/// `GroupMember`: an ephemeral node for each member, whose name is its id. Cheap to clone.
///
/// # Guarantees
/// - A member stays one until it leaves: its node comes back in a new session, and when somebody deletes it.
/// - The node of another with the same id is never touched. A process that was restarted waits for its
///   predecessor's node to go.
/// - A member that leaves, or is dropped, leaves no node. After a crash the member's node goes with its
///   session.
/// - In the list of a `Membership` its own members are always there, as in Curator's.
///
/// # Caveats
/// Two processes that look at the same time may see different lists. To agree on who does what take an
/// election or a lock.
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
///         println!("{} is gone", peer.id);
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
    /// Counts members that left.
    left: watch::Sender<u64>,
    /// Cache that all lists share.
    cache: Mutex<Weak<ChildrenCache>>,
}

impl Group {
    pub(super) fn own(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Bytes>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a member out of the list of this group's own.
    pub(super) fn leave(&self, id: &str) {
        self.own().remove(id);
        self.left.send_modify(|left| *left += 1);
    }

    /// Tells of each time that somebody left.
    pub(super) fn left(&self) -> watch::Receiver<u64> {
        self.left.subscribe()
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
    /// The group at `path`, which need not exist yet. Joins nothing.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule or is the root.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        let path = NodePath::new("join", path)?.into();
        let (own, left, cache) = (Mutex::default(), watch::Sender::new(0), Mutex::default());
        let group = Group { client: client.clone(), path, own, left, cache };
        Ok(Self { group: Arc::new(group) })
    }

    /// The path, as it was given.
    pub fn path(&self) -> &str {
        &self.group.path
    }

    /// Becomes a member, and waits until the node is there. Where another session has a node of the same id,
    /// such as that of this process before a restart, it waits until that node goes, for at most two session
    /// timeouts.
    ///
    /// # Errors
    /// `InvalidInput` when the id is not the name of a node (empty, or with a `/`), `TooLarge`,
    /// `AlreadyRegistered` when this client has joined with that id already, `NodeExists` when the other node
    /// stays, `NoAuth`, `Timeout`, `Closed`. Nothing is left then.
    ///
    /// # Cancel safety
    /// This method is cancel safe: nothing is left behind.
    pub fn join<D: Into<Bytes>>(
        &self,
        id: &str,
        data: D,
    ) -> impl Future<Output = Result<Member, Error>> + Send + use<D> {
        let (group, id, data) = (Arc::clone(&self.group), id.to_owned(), data.into());
        async move { Member::join(&group, &id, data).await }
    }

    /// As [`join`](Self::join), with what Curator's members have as data: the identity that the client was
    /// built with, by default its local address ([`default_data`](docent_core::Client::default_data)).
    ///
    /// # Errors
    /// As [`join`](Self::join).
    ///
    /// # Cancel safety
    /// This method is cancel safe: nothing is left behind.
    pub fn join_by_identity(&self, id: &str) -> impl Future<Output = Result<Member, Error>> + Send + use<> {
        let identity = self.group.client.default_data().to_owned();
        self.join(id, identity)
    }

    /// The members, live. Waits until they were read once, at most for the operation timeout.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn members(&self) -> impl Future<Output = Result<Members, Error>> + Send + use<> {
        let group = Arc::clone(&self.group);
        async move {
            let cache = group.cache()?;
            cache.ready().await?;
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
