use super::PartitionerBuilder;
use super::builder::lock_path;
use super::layout::{members, share_of};
use super::share::Share;
use crate::{AcquireError, MultiGuard, MultiLock, Mutex, Owner};
use docent_core::recipe::{KeptNode, Line, NodePath, RecipeKind, debug_handle};
use docent_core::{ChildrenCache, ChildrenEvents, Client, Error};
use futures_util::StreamExt;
use std::fmt;
use std::time::Duration;

static KIND: RecipeKind = RecipeKind::new("partition", "acquire");

/// Text before the number in a contender's name, as in kazoo's `Lock`.
const MARKER: &str = "__lock__";
/// Member of a group that shares a set of items, such as the shards of a table: each item is held by one
/// member at most, and by one once the members have settled.
///
/// # Expected flow
/// Every process makes one with the same path and items. [`acquire`](Self::acquire) waits until the members
/// have settled and returns a [`Share`], which holds a lock for each of its items. When a member comes or
/// goes [`Share::changed`] says so: the process finishes or stops its work, [releases](Share::release) the
/// share and acquires the next one, which may have other items.
///
/// The layout is that of kazoo's `SetPartitioner`, which takes part in the same group: its states are
/// `allocating` during `acquire`, `acquired` while a share is held, `release` once its `changed` has
/// resolved, and `failure` when that says that it is lost.
///
/// # Guarantees
/// - No two shares hold one item: each has a [`Mutex`] of its own, with a fence.
/// - Members with the same items that see the same members hold all of them, spread evenly: their numbers of
///   items differ by one at most.
/// - A share stays as it is until it is released or lost: another member waits for its items.
/// - A new session makes the member's node anew under the same name, so that it keeps its place in the order.
///
/// # Assumptions
/// Members release a share soon after it changed: items that move wait for that. Each member has an identity
/// of its own. All have the same items; where they do not, an item that one of them lacks may be held by
/// nobody.
///
/// # On drop
/// It leaves the group, in the background. A share that it acquired stays held.
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
///         stopped = share.run(work(share.items())) => stopped?,
///         _ = share.changed() => {}
///     }
///     share.release().await?;
/// }
/// # }
/// ```
#[must_use = "it leaves the group when it is dropped"]
pub struct Partitioner {
    pub(super) client: Client,
    pub(super) path: NodePath,
    /// Sorted.
    pub(super) items: Vec<String>,
    pub(super) own: String,
    pub(super) member: KeptNode,
    pub(super) party: ChildrenCache,
    pub(super) settle: Duration,
}

impl Partitioner {
    /// Joins the group at `path`, which shares `items`: names of nodes, each counted once. An empty set is
    /// allowed.
    ///
    /// # Errors
    /// `InvalidInput` when the path or an item breaks a rule, such as an item that contains '/'; `Closed`.
    pub fn new<I: Into<String>>(
        client: &Client,
        path: &str,
        items: impl IntoIterator<Item = I>,
    ) -> Result<Self, Error> {
        Self::builder(client, path, items).join()
    }

    /// Prepares a member with settings of its own.
    pub fn builder<I: Into<String>>(
        client: &Client,
        path: &str,
        items: impl IntoIterator<Item = I>,
    ) -> PartitionerBuilder {
        PartitionerBuilder::new(client, path, items.into_iter().map(Into::into).collect())
    }

    /// The path, as it was given.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Number of members now, as far as is known; 0 before they were read.
    pub fn members(&self) -> usize {
        self.known().len()
    }

    /// Waits until the members have settled and all items of this one are held, however long others hold
    /// them; an outage of the servers is waited out. Begins anew when a member comes or goes meanwhile. With
    /// more members than items a share may be empty.
    ///
    /// A share that this one acquired before is waited for, too, as far as the new one has the same items:
    /// release or drop that first.
    ///
    /// # Errors
    /// As [`Mutex::acquire`], and `NoAuth` when the members may not be listed; `NodeExists` when the member's
    /// node is taken by somebody else.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the lines: the locks are released in the
    /// background.
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
            // Dropped otherwise, which releases the locks.
            if self.known() == members {
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
        // Not as the ambient owner: a share of that would be re-entered.
        Box::pin(locks.acquire_as(&Owner::default())).await.map(Some)
    }

    /// The members, once they are known to have stayed the same for a while and this one is among them.
    async fn settled(&self, events: &mut ChildrenEvents) -> Result<Vec<String>, AcquireError> {
        loop {
            let members = self.known();
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

    /// Waits for news of the members, and looks meanwhile whether the servers refuse the member's node or the
    /// list.
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
                // Both are as they should be: the list will show it, or a wait that was cut short goes on.
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        tokio::select! {
            biased;
            event = events.next() => match event {
                Some(_) => Ok(()),
                None => Err(Error::closed("partition", &self.path).into()),
            },
            error = refused => Err(error.into()),
        }
    }

    fn known(&self) -> Vec<String> {
        known(&self.party)
    }

    /// Leaves the group, and waits until the member's node is gone, at most for the operation timeout.
    ///
    /// # Errors
    /// `Timeout` when no server could be reached in time: it leaves in the background. `Closed`: the node
    /// goes with its session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: leaving goes on.
    pub async fn leave(self) -> Result<(), Error> {
        self.member.remove().await
    }
}

/// Pause between looks at a member that is not in the list yet.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The members that are known now.
pub(super) fn known(party: &ChildrenCache) -> Vec<String> {
    let current = party.current();
    members(current.iter().map(|(name, _)| &**name))
}

/// Waits until the members are others than `members`.
///
/// # Errors
/// `Closed`.
pub(super) async fn changed(
    party: &ChildrenCache,
    events: &mut ChildrenEvents,
    members: &[String],
) -> Result<(), Error> {
    while known(party) == members {
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
