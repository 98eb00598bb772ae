use super::layout::{member_name, members, share_of};
use super::share::Share;
use crate::{AcquireError, MultiGuard, MultiLock, Mutex, Owner};
use docent_core::recipe::{InOperation, KeptNode, Line, NodePath, RecipeKind, debug_handle};
use docent_core::{ChildrenCache, ChildrenEvents, Client, Error, Released};
use futures_util::StreamExt;
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

static KIND: RecipeKind = RecipeKind::new("partition", "acquire");

/// Text before the sequence number in a contender's name, as in kazoo's `Lock`.
const MARKER: &str = "__lock__";

/// Member of a group that distributes a set of items, such as the shards of a table. At most one member holds
/// an item, and exactly one does once the members have settled.
///
/// # Expected flow
/// Every process creates a partitioner with the same path and items. [`acquire`](Self::acquire) waits until
/// the members have settled and returns a [`Share`], which holds a lock for each of its items. When a member
/// joins or leaves, [`Share::changed`] resolves. The process then finishes or stops its work,
/// [releases](Share::release) the share and acquires the next one, which may have other items.
///
/// The layout is that of kazoo's `SetPartitioner`, which can join the same group. Its states correspond to
/// this type as follows:
///
/// - `allocating`: `acquire` is running;
/// - `acquired`: a share is held;
/// - `release`: `changed` of the share has resolved;
/// - `failure`: `changed` has reported that the share is lost.
///
/// # Guarantees
/// - No two shares hold the same item: each item has its own [`Mutex`], with a fence.
/// - Members that have the same items and see the same members hold all items between them, spread evenly:
///   their numbers of items differ by at most one.
/// - A share stays the same until it is released or lost: another member waits for its items.
/// - In a new session the member's node is re-created under the same name, so the member keeps its place in
///   the order.
///
/// # Assumptions
/// Members release a share soon after `changed` resolves, because items that move wait for the release. Each
/// member has its own identity. All members have the same items; if an item is missing from a member's set,
/// possibly no member holds it.
///
/// # On drop
/// The member leaves the group in the background. A share that it acquired stays held.
///
/// # Examples
/// ```no_run
/// # use docent_core::Client;
/// # use docent_locks::Partitioner;
/// # async fn work(items: &[String]) {}
/// # async fn example(client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// let shards = (0..16).map(|shard| format!("shard-{shard}"));
/// let partitioner = Partitioner::new(&client, "/orders/shards", shards)?;
/// loop {
///     let share = partitioner.acquire().await?;
///     tokio::select! {
///         _ = share.run(work(share.items())) => {} // also returns when the share is lost
///         _ = share.changed() => {}
///     }
///     drop(share); // gives the items up in the background
/// }
/// # }
/// ```
#[must_use = "it leaves the group when it is dropped"]
pub struct Partitioner {
    client: Client,
    path: NodePath,
    /// Sorted names of the items.
    items: Vec<String>,
    own: String,
    member: KeptNode,
    party: ChildrenCache,
    settle: Duration,
}

impl Partitioner {
    /// Joins the group at `path`, which distributes `items`. Each item is used as a node's name; duplicates
    /// are ignored. An empty set is allowed.
    ///
    /// # Errors
    /// `InvalidInput` if the path or an item breaks a rule, such as an item that contains '/'; `Closed`.
    pub fn new<I: Into<String>>(
        client: &Client,
        path: &str,
        items: impl IntoIterator<Item = I>,
    ) -> Result<Self, Error> {
        Self::builder(client, path, items).join()
    }

    /// Returns a builder for a member with custom settings.
    pub fn builder<I: Into<String>>(
        client: &Client,
        path: &str,
        items: impl IntoIterator<Item = I>,
    ) -> PartitionerBuilder {
        PartitionerBuilder::new(client, path, items.into_iter().map(Into::into).collect())
    }

    /// Returns the path that was passed to the constructor.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the number of members known so far; 0 before the members were read.
    pub fn members(&self) -> usize {
        current_members(&self.party).len()
    }

    /// Waits until the members have settled and this member holds all its items, as long as necessary. An
    /// outage of the servers is waited out. Starts again if a member joins or leaves meanwhile. With more
    /// members than items a share may be empty.
    ///
    /// This call also waits for the items of a share that this partitioner acquired before. Release or drop
    /// that share first.
    ///
    /// # Errors
    /// Those of [`Mutex::acquire`]; `NoAuth` if the members cannot be listed; `NodeExists` if another
    /// client's node has the name of the member's node.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses your place in the queue of every item. The locks
    /// are released in the background.
    pub async fn acquire(&self) -> Result<Share, AcquireError> {
        let mut events = self.party.changes();
        loop {
            let members = self.settled(&mut events).await?;
            let items = share_of(&self.own, &members, &self.items);
            let guard = tokio::select! {
                biased;
                changed = changed(&self.party, &mut events, &members) => {
                    changed?;
                    continue;
                }
                guard = self.lock(&items) => guard?,
            };
            // If the members have changed, dropping the guard releases the locks.
            if current_members(&self.party) == members {
                return Ok(Share::new(items, members, guard, self.party.clone()));
            }
        }
    }

    /// Acquires the locks of `items`.
    async fn lock(&self, items: &[String]) -> Result<Option<MultiGuard>, AcquireError> {
        if items.is_empty() {
            return Ok(None);
        }
        let lock = |item: &String| {
            let line = Line::new(&self.client, &lock_path(&self.path, item)?, &KIND, MARKER)?;
            Ok::<_, Error>(Mutex::of(line))
        };
        let locks = MultiLock::new(items.iter().map(lock).collect::<Result<Vec<_>, _>>()?)?;
        // Does not use the ambient owner, which could re-enter the locks of an earlier share.
        Box::pin(locks.acquire_as(&Owner::default())).await.map(Some)
    }

    /// Returns the members, once they have stayed the same for the settling time and include this member.
    async fn settled(&self, events: &mut ChildrenEvents) -> Result<Vec<String>, AcquireError> {
        loop {
            let members = current_members(&self.party);
            if self.party.is_stale() || !members.contains(&self.own) {
                self.party_changes(events).await?;
                continue;
            }
            tokio::select! {
                biased;
                changed = changed(&self.party, events, &members) => changed?,
                () = tokio::time::sleep(self.settle) => return Ok(members),
            }
        }
    }

    /// Waits for a change of the members. Meanwhile checks whether the servers refuse the member's node or
    /// the listing.
    async fn party_changes(&self, events: &mut ChildrenEvents) -> Result<(), AcquireError> {
        let refused = async {
            loop {
                if let Err(error) = self.party.ready().await
                    && !error.is_retryable()
                {
                    return error;
                }
                if let Err(error) = self.member.present().await
                    && !error.is_retryable()
                {
                    return error;
                }
                // Both succeeded or failed with a retryable error: waits for the list to change, and checks
                // again.
                tokio::time::sleep(RECHECK_PAUSE).await;
            }
        };
        tokio::select! {
            biased;
            event = events.next() => match event {
                Some(_) => Ok(()),
                None => Err(Error::closed("acquire", &self.path).into()),
            },
            error = refused => Err(error.in_operation("acquire").into()),
        }
    }

    /// Leaves the group, and waits until the member's node is deleted, at most for the operation timeout.
    /// Returns [`Released::Pending`] if that takes longer: the member leaves in the background.
    ///
    /// # Errors
    /// `Closed`: the node is deleted with its session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: leaving continues in the background.
    pub async fn leave(self) -> Result<Released, Error> {
        self.member.remove().await.in_operation("leave")
    }
}

/// Pause between checks of a member that is not in the list yet.
const RECHECK_PAUSE: Duration = Duration::from_secs(1);

/// Returns the members known now.
pub(super) fn current_members(party: &ChildrenCache) -> Vec<String> {
    let current = party.current();
    members(current.iter().map(|(name, _)| &**name))
}

/// Waits until the members differ from `members`.
///
/// # Errors
/// `Closed`.
pub(super) async fn changed(
    party: &ChildrenCache,
    events: &mut ChildrenEvents,
    members: &[String],
) -> Result<(), Error> {
    while current_members(party) == members {
        if events.next().await.is_none() {
            return Err(Error::closed("partition", party.path()));
        }
    }
    Ok(())
}

impl fmt::Debug for Partitioner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "Partitioner", self.path(), &self.client)
            .field("items", &self.items.len())
            .field("member", &self.own)
            .finish_non_exhaustive()
    }
}

/// Default time for which the members must stay the same before the items are distributed.
const SETTLE: Duration = Duration::from_secs(1);

/// Settings of a [`Partitioner`].
#[derive(Clone)]
#[must_use = "a builder does nothing until `join` is called"]
pub struct PartitionerBuilder {
    client: Client,
    path: String,
    items: BTreeSet<String>,
    identity: Option<String>,
    settle: Duration,
}

impl PartitionerBuilder {
    pub(super) fn new(client: &Client, path: &str, items: BTreeSet<String>) -> Self {
        Self { client: client.clone(), path: path.to_owned(), items, identity: None, settle: SETTLE }
    }

    /// Sets the identity of the member. Members are ordered by identity, and the member's node shows it. The
    /// default is the client's identity. It must not contain '/'.
    pub fn identity(self, identity: impl Into<String>) -> Self {
        Self { identity: Some(identity.into()), ..self }
    }

    /// Sets the time for which the members must stay the same before a share is acquired. Default 1 s. With a
    /// longer time, fewer shares are given up while many processes start one after another.
    pub fn settle(self, settle: Duration) -> Self {
        Self { settle, ..self }
    }

    /// Joins the group.
    ///
    /// # Errors
    /// `InvalidInput` if the path, the identity or an item breaks a rule; `Closed`.
    pub fn join(self) -> Result<Partitioner, Error> {
        let Self { client, path, items, identity, settle } = self;
        let path = NodePath::of_recipe(&client, "partition", path)?;
        for item in &items {
            lock_path(&path, item)?;
        }
        let identity = identity.unwrap_or_else(|| client.identity().to_owned());
        let own = member_name(&identity);
        let party = format!("{path}/party");
        let member = segment(&party, &own, "identity", &identity)?;
        Ok(Partitioner {
            party: ChildrenCache::new(&client, &party).in_operation("partition")?,
            member: KeptNode::builder(&client, member)
                .data(identity)
                .label("partition")
                .start()
                .in_operation("partition")?,
            items: items.into_iter().collect(),
            client,
            path,
            own,
            settle,
        })
    }
}

fn lock_path(path: &str, item: &str) -> Result<String, Error> {
    segment(&format!("{path}/locks"), item, "item", item)
}

/// Returns the path of the child `name` of `folder`.
fn segment(folder: &str, name: &str, kind: &str, value: &str) -> Result<String, Error> {
    if value.is_empty() || value.contains('/') {
        let detail = format!("{kind} {value:?} must be the name of a node, without '/'");
        return Err(Error::invalid_input("partition", detail));
    }
    Ok(NodePath::new("partition", format!("{folder}/{name}"))?.into())
}

impl fmt::Debug for PartitionerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "PartitionerBuilder", &self.path, &self.client)
            .field("items", &self.items.len())
            .finish_non_exhaustive()
    }
}
