use super::error::{BarrierError, within};
use docent_core::recipe::{InOperation, KeptNode, NodePath, debug_handle, if_exists};
use docent_core::{Client, CreateMode, Error, ErrorKind, Node, Stat, planted};
use futures_util::StreamExt;
use futures_util::future::try_join_all;
use std::collections::HashSet;
use std::fmt;
use std::future::Future;
use std::time::Duration;
use uuid::Uuid;

/// Name of the node that lets members in.
pub const READY: &str = "ready";

/// A barrier that lets its members in when enough have arrived, and out when all have left.
///
/// # Expected flow
/// Each member [enters](Self::enter), which waits for the other members, does its part of the work, and
/// [leaves](Entered::leave), which waits for the others again. The layout is that of Curator's
/// `DistributedDoubleBarrier`: an ephemeral node for each member, and a persistent node `ready` once they are
/// let in.
///
/// # Guarantees
/// - No member is let in before the required number of members is present at the same time. Members that
///   arrive later, while some of the first members are still in, are let in as well.
/// - Only members count: other children are ignored.
/// - A `ready` node that a crashed round left behind lets no member in: it counts only while a member exists
///   that is older than `ready`.
/// - A member that stops waiting or crashes no longer counts.
/// - Kazoo's members take part: their `DoubleBarrier` has the same nodes.
///
/// # What happens
/// - *Connection lost:* a member remains a member until its session expires.
/// - *Session expired:* the node of a waiting member is re-created in the next session. If all others have
///   come and gone meanwhile, the member waits for the next round. A member that was let in is no longer a
///   member: the others do not wait for it, and it does not count for the next round.
/// - *Drop or cancel:* the member's node is deleted in the background.
///
/// # Caveats
/// A member that has entered and hangs blocks all members that leave. The request that lets the members in
/// names all required members, so it must fit into the servers' request limit (`jute.maxbuffer`). With 1 MiB
/// and short paths, the limit is about ten thousand members.
///
/// Source: "Double Barriers" in ZooKeeper's recipes, with Curator's layout.
#[derive(Clone)]
pub struct DoubleBarrier {
    client: Client,
    path: String,
    members: u32,
}

/// State of the barrier, as a read found it.
enum DoorState {
    /// Waiting members are let in.
    Open,
    /// Enough members have arrived (these names), so `ready` has to be written, over an earlier `ready` if
    /// there is one.
    ToBeOpened(Vec<String>, Option<Stat>),
    /// Not enough members have arrived.
    Closed,
}

/// State of a double barrier's node `ready`, as the watch of a waiting member reported it.
enum Ready {
    /// The node has not been read yet.
    Unread,
    /// The node does not exist.
    Missing,
    /// The node exists. It belongs to this round, or is left over from an earlier one.
    Present(Node),
    /// The node was created after the member arrived, and was deleted since. Kazoo's members delete it as
    /// soon as they leave.
    Passed,
}

impl Ready {
    /// Records what the watch reports.
    fn update(&mut self, node: Option<Node>) {
        *self = match (&self, node) {
            (_, Some(node)) => Self::Present(node),
            // The watch reports absence again only if the node existed in between.
            (Self::Missing | Self::Passed, None) => Self::Passed,
            (Self::Unread | Self::Present(_), None) => Self::Missing,
        };
    }

    /// Forgets a `ready` that let this member not in, because its node did not exist at the time.
    fn forget_passed(&mut self) {
        if matches!(self, Self::Passed) {
            *self = Self::Missing;
        }
    }
}

impl DoubleBarrier {
    /// Creates a handle for the barrier at `path` with the given number of members. Missing parents are
    /// created on demand.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule, or if `members` is 0.
    pub fn new(client: &Client, path: &str, members: u32) -> Result<Self, Error> {
        let path = NodePath::of_recipe(client, "double_barrier", path)?.into();
        if members == 0 {
            return Err(Error::invalid_input("double_barrier", "members 0 must be at least 1"));
        }
        Ok(Self { client: client.clone(), path, members })
    }

    /// Returns the path that was passed to the constructor.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Becomes a member and waits until enough members have arrived.
    ///
    /// # Errors
    /// `Timeout` if no server can be reached to create the member's node, `NoAuth`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the member's node is removed in the background.
    pub fn enter(&self) -> impl Future<Output = Result<Entered, Error>> + Send + use<> {
        let barrier = self.clone();
        async move { Box::pin(barrier.join()).await.in_operation("enter") }
    }

    async fn join(&self) -> Result<Entered, Error> {
        let name = Uuid::new_v4().to_string();
        let member = KeptNode::builder(&self.client, self.child(&name)).data(self.identity());
        let mut member = member.label("double_barrier").brief().start()?;
        member.present().await?;
        let mut changes = self.client.watch_data(&self.ready())?;
        let mut ready = Ready::Unread;
        loop {
            tokio::select! {
                change = changes.next() => match change {
                    Some(change) => ready.update(change?),
                    // The stream ends when the client is closed; this request returns the matching error.
                    None => {
                        self.client.sync(&self.path).await?;
                        continue;
                    }
                },
                // The member's node may have been re-created after all others had read the list of members.
                Some(_) = member.changed() => {}
            }
            loop {
                match self.try_open(&name, &ready).await {
                    Ok(true) => {
                        // A re-created node would count as an additional member of the next round.
                        member.do_not_recreate();
                        return Ok(Entered { barrier: self.clone(), member, name });
                    }
                    Ok(false) => {
                        ready.forget_passed();
                        break;
                    }
                    // Retries after a timeout, because no later event would trigger another read.
                    Err(error) if error.kind() == ErrorKind::Timeout => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }

    /// Enters like [`enter`](Self::enter), waiting at most `timeout`.
    ///
    /// # Errors
    /// [`BarrierError::TimedOut`] if the timeout expired: the member's node is being removed. Otherwise those
    /// of [`enter`](Self::enter).
    ///
    /// # Cancel safety
    /// This method is cancel safe: the member's node is removed in the background.
    pub fn enter_timeout(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<Entered, BarrierError>> + Send + use<> {
        within(timeout, "enter", self.path.clone(), self.enter())
    }

    /// Returns the names of the members, sorted.
    async fn names(&self) -> Result<Vec<String>, Error> {
        Ok(self.listing().await?.0)
    }

    /// Returns the names of the members, sorted, and whether `ready` exists.
    async fn listing(&self) -> Result<(Vec<String>, bool), Error> {
        let children = if_exists(self.client.children(&self.path).await)?;
        let mut names = children.map_or_else(Vec::new, |children| children.names);
        let ready = names.iter().any(|name| name == READY);
        names.retain(|name| Uuid::parse_str(name).is_ok());
        names.sort();
        Ok((names, ready))
    }

    /// Waits until the node of a member is deleted.
    async fn until_deleted(&self, name: &str) -> Result<(), Error> {
        let mut states = self.client.watch_exists(&self.child(name))?;
        while let Some(stat) = states.next().await {
            if stat?.is_none() {
                return Ok(());
            }
        }
        self.client.sync(&self.path).await
    }

    /// Removes `ready` together with the node of the last member. A removal that arrives late, after the
    /// member's node was deleted, therefore cannot hit the `ready` of a later round (decision 11). Leaves
    /// both nodes while there are other members, which write `ready` again.
    async fn close(&self, own: &str) -> Result<(), Error> {
        while self.names().await? == [own] {
            let Some(ready) = self.client.exists(&self.ready()).await? else { break };
            let closing = self.client.transaction().delete(&self.child(own), None);
            match closing.delete(&self.ready(), ready.version).commit().await {
                // Applying the delete twice has the same effect as once.
                Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {}
                closed => return settled(closed.map(drop)),
            }
        }
        Ok(())
    }

    /// Removes the `ready` node of a round whose last member crashed. This is an exact write, so it is not
    /// applied late. A member that arrives meanwhile writes `ready` again, which changes its version.
    async fn remove_stale_ready(&self) -> Result<(), Error> {
        let Some(ready) = self.client.exists(&self.ready()).await? else { return Ok(()) };
        let removing = self.client.transaction().delete(&self.ready(), ready.version);
        settled(removing.commit_exactly().await.map(drop))
    }

    /// Returns whether this member is let in. Opens the barrier if enough members have arrived.
    async fn try_open(&self, own: &str, ready: &Ready) -> Result<bool, Error> {
        loop {
            match self.door(own, ready).await? {
                DoorState::Open => return Ok(true),
                DoorState::ToBeOpened(names, earlier) => {
                    if self.open(own, names, earlier).await? {
                        return Ok(false);
                    }
                }
                DoorState::Closed => return Ok(false),
            }
        }
    }

    async fn door(&self, own: &str, ready: &Ready) -> Result<DoorState, Error> {
        let names = self.names().await?;
        if !names.iter().any(|name| name == own) {
            // The member reads again when its node exists again.
            return Ok(DoorState::Closed);
        }
        let earlier = match ready {
            Ready::Passed => return Ok(DoorState::Open),
            Ready::Present(Node { stat, .. }) => {
                if planted!(ReadyOfEarlierRound) || self.has_older(own, &names, stat).await? {
                    return Ok(DoorState::Open);
                }
                Some(*stat)
            }
            Ready::Unread | Ready::Missing => None,
        };
        let enough = names.len() >= self.members as usize;
        Ok(if enough { DoorState::ToBeOpened(names, earlier) } else { DoorState::Closed })
    }

    /// Returns whether a member arrived before the barrier was opened.
    async fn has_older(&self, own: &str, names: &[String], ready: &Stat) -> Result<bool, Error> {
        // Without an older member, `ready` is left over from an earlier round.
        let is_older = async |name: String| {
            let stat = self.client.exists(&self.child(&name)).await?;
            Ok::<_, Error>(stat.is_some_and(|stat| stat.czxid < ready.mzxid))
        };
        // Checks the own node first, because it is usually older.
        if is_older(own.to_owned()).await? {
            return Ok(true);
        }
        let remaining = names.iter().filter(|name| *name != own).cloned();
        Ok(try_join_all(remaining.map(is_older)).await?.contains(&true))
    }

    /// Lets all members in if the listed members still exist, which may be long after the listing. Another
    /// member that does the same at the same time has the same effect. Returns false if one of the members
    /// has left: then the caller has to read again.
    async fn open(&self, own: &str, mut names: Vec<String>, earlier: Option<Stat>) -> Result<bool, Error> {
        // The own member comes first, so that the transaction checks its node. Once that node is deleted, a
        // late write is refused (decision 11).
        names.sort_by_key(|name| name != own);
        let opening = || {
            let members = names.iter().take(self.members as usize);
            let checked = members
                .fold(self.client.transaction(), |opening, name| opening.check(&self.child(name), None));
            match &earlier {
                None => checked.create(&self.ready(), self.identity(), CreateMode::Persistent),
                Some(stat) => checked.set(&self.ready(), self.identity(), stat.version),
            }
        };
        loop {
            match opening().commit().await {
                // Applying the write twice has the same effect as once.
                Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {}
                Err(error) if error.kind() == ErrorKind::NoNode && error.path() != Some(&self.ready()) => {
                    return Ok(false);
                }
                opened => return settled(opened.map(drop)).map(|()| true),
            }
        }
    }

    fn identity(&self) -> String {
        self.client.identity().to_owned()
    }

    fn ready(&self) -> String {
        self.child(READY)
    }

    fn child(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }
}

/// Accepts errors that the next read resolves: another member was faster, or a reply was lost.
fn settled(result: Result<(), Error>) -> Result<(), Error> {
    use ErrorKind::{BadVersion, NoNode, NodeExists, OutcomeUnknown};
    match result {
        Err(error) if matches!(error.kind(), NodeExists | NoNode | BadVersion | OutcomeUnknown) => Ok(()),
        result => result,
    }
}

impl fmt::Debug for DoubleBarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "DoubleBarrier", self.path(), &self.client)
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}

/// Member that was let in by a [`DoubleBarrier`].
///
/// # On drop
/// The member leaves in the background, without waiting for the others.
#[must_use = "the member leaves when this is dropped"]
pub struct Entered {
    barrier: DoubleBarrier,
    member: KeptNode,
    name: String,
}

impl Entered {
    /// Returns the path of the member's node.
    pub fn path(&self) -> &str {
        self.member.path()
    }

    /// Leaves, and waits until all current members have left. Members that arrive later belong to the next
    /// round.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`: the member leaves in the background.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the member leaves in the background, without waiting for the others.
    pub async fn leave(self) -> Result<(), Error> {
        self.wait_for_others().await.in_operation("leave")
    }

    async fn wait_for_others(self) -> Result<(), Error> {
        let Self { barrier, member, name } = self;
        let round: HashSet<String> = barrier.names().await?.into_iter().collect();
        let mut member = Some(member);
        loop {
            let (mut names, ready) = barrier.listing().await?;
            let has_stale_ready = ready && names.is_empty();
            names.retain(|name| round.contains(name));
            // The first member leaves last, so that all others wait for the same node and are woken once.
            let awaited = match (names.as_slice(), member.is_some()) {
                ([first, .., last], true) if *first == name => last,
                (names, true) => {
                    if names == [name.as_str()] {
                        barrier.close(&name).await?;
                    }
                    if let Some(member) = member.take() {
                        // If the removal is pending, the next steps wait for this member's own node.
                        member.remove().await?;
                    }
                    continue;
                }
                (_, false) if planted!(LeavesAtOnce) => return Ok(()),
                ([first, ..], false) => first,
                ([], false) if has_stale_ready => return barrier.remove_stale_ready().await,
                ([], false) => return Ok(()),
            };
            barrier.until_deleted(awaited).await?;
        }
    }
}

impl fmt::Debug for Entered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "Entered", self.path(), &self.barrier.client).finish_non_exhaustive()
    }
}
