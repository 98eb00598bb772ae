use super::Entered;
use super::error::{BarrierError, within};
use super::ready::Ready;
use docent_core::recipe::{KeptNode, NodePath, debug_handle};
use docent_core::{Client, CreateMode, Error, ErrorKind, Node, Stat, planted};
use futures_util::StreamExt;
use futures_util::future::try_join_all;
use std::fmt;
use std::future::Future;
use std::time::Duration;
use uuid::Uuid;

/// Name of the node that lets members in.
pub const READY: &str = "ready";

/// Lets members in once so many have come, and out once all have left.
///
/// # Expected flow
/// Each member [enters](Self::enter), which waits for the others, does its part of the work and
/// [leaves](Entered::leave), which waits for the others again. The layout is that of Curator's
/// `DistributedDoubleBarrier`: an ephemeral node for each member, and `ready`, a persistent one, once they
/// are let in.
///
/// # Guarantees
/// - Nobody is let in before as many members are there at the same time as were asked for. Members that come
///   after that, while some of the first are still in, are let in as well.
/// - Only members count: other children are ignored.
/// - A `ready` that a crashed round left behind lets nobody in: it counts only while a member is there that
///   is older.
/// - A member that gives up waiting, or crashes, does not count any more.
/// - Kazoo's members take part: their `DoubleBarrier` has the same nodes.
///
/// # What happens
/// *Link down:* a member stays one until its session ends. *Session over:* a waiting member's node is made
/// anew in the next session; if that takes so long that all others have come and gone meanwhile, it waits for
/// the next round. A member that was let in is none any more: nobody waits for it, and it does not count for
/// the next round. *Drop or cancel:* the node is deleted in the background.
///
/// # Caveats
/// A member that has entered and hangs holds up all who leave. As many members as are asked for are named in
/// one request, which must fit into the servers' limit (`jute.maxbuffer`): with 1 MiB and short paths that is
/// about ten thousand.
///
/// Source: "Double Barriers" in ZooKeeper's recipes, with Curator's layout.
#[derive(Clone)]
pub struct DoubleBarrier {
    pub(super) client: Client,
    path: String,
    members: u32,
}

/// State of the barrier's door, as a look at it found it.
enum DoorState {
    /// Waiting members are let in.
    Open,
    /// Enough members have come, which are these: the door must be opened, over an earlier `ready` if there
    /// is one.
    ToBeOpened(Vec<String>, Option<Stat>),
    /// Somebody is missing.
    Closed,
}

impl DoubleBarrier {
    /// The barrier at `path` for so many members. Parents are created on demand.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule, or there are no members.
    pub fn new(client: &Client, path: &str, members: u32) -> Result<Self, Error> {
        let path = NodePath::new("double_barrier", path)?.into();
        if members == 0 {
            return Err(Error::invalid_input("double_barrier", "members 0 must be at least 1"));
        }
        Ok(Self { client: client.clone(), path, members })
    }

    /// The path, as it was given.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Becomes a member and waits until enough have.
    ///
    /// # Errors
    /// `Timeout` when no server can be reached to become one, `NoAuth`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe: its node is removed in the background.
    pub fn enter(&self) -> impl Future<Output = Result<Entered, Error>> + Send + use<> {
        let barrier = self.clone();
        async move { Box::pin(barrier.come_in()).await }
    }

    async fn come_in(&self) -> Result<Entered, Error> {
        let name = Uuid::new_v4().to_string();
        let member = KeptNode::new(&self.client, &self.child(&name), self.identity())?;
        let mut member = member.labelled("double_barrier");
        member.present().await?;
        let mut changes = self.client.watch_data(&self.ready())?;
        let mut ready = Ready::Unread;
        loop {
            tokio::select! {
                change = changes.next() => match change {
                    Some(change) => ready.told(change?),
                    // The stream ends with the client: so does this.
                    None => {
                        self.client.sync(&self.path).await?;
                        continue;
                    }
                },
                // Its node may have been made anew, after everybody else had looked.
                Some(_) = member.changed() => {}
            }
            loop {
                match self.look(&name, &ready).await {
                    Ok(true) => {
                        // Made anew it would count as one more for the next round.
                        member.do_not_recreate();
                        return Ok(Entered::new(self.clone(), member, name));
                    }
                    Ok(false) => {
                        ready.forget_passed();
                        break;
                    }
                    // It waits through that. Nothing would tell it to look later.
                    Err(error) if error.kind() == ErrorKind::Timeout => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }

    /// As [`enter`](Self::enter), for at most `timeout`.
    ///
    /// # Errors
    /// [`BarrierError::TimedOut`] when that was not enough: its node is being removed. Else as
    /// [`enter`](Self::enter).
    ///
    /// # Cancel safety
    /// This method is cancel safe: its node is removed in the background.
    pub fn enter_timeout(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<Entered, BarrierError>> + Send + use<> {
        within(timeout, "enter", self.path.clone(), self.enter())
    }

    /// The names of the members, sorted.
    pub(crate) async fn names(&self) -> Result<Vec<String>, Error> {
        Ok(self.listing().await?.0)
    }

    /// The names of the members, sorted, and whether `ready` is there.
    pub(crate) async fn listing(&self) -> Result<(Vec<String>, bool), Error> {
        let mut names = match self.client.children(&self.path).await {
            Ok(children) => children.names,
            Err(error) if error.kind() == ErrorKind::NoNode => Vec::new(),
            Err(error) => return Err(error),
        };
        let ready = names.iter().any(|name| name == READY);
        names.retain(|name| Uuid::parse_str(name).is_ok());
        names.sort();
        Ok((names, ready))
    }

    /// Waits until a member is gone.
    pub(crate) async fn until_gone(&self, name: &str) -> Result<(), Error> {
        let mut there = self.client.watch_exists(&self.child(name))?;
        while let Some(stat) = there.next().await {
            if stat?.is_none() {
                return Ok(());
            }
        }
        self.client.sync(&self.path).await
    }

    /// Removes `ready` together with the node of the last member, so that a removal that arrives late, when
    /// that is gone, cannot hit the `ready` of a later round (decision 11). Leaves both while other members
    /// are there, which open the door over it.
    pub(crate) async fn close(&self, own: &str) -> Result<(), Error> {
        while self.names().await? == [own] {
            let Some(ready) = self.client.exists(&self.ready()).await? else { break };
            let closing = self.client.transaction().delete(&self.child(own), None);
            match closing.delete(&self.ready(), ready.version).commit().await {
                // Done twice it is as if it was done once.
                Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {}
                closed => return settled(closed.map(drop)),
            }
        }
        Ok(())
    }

    /// Removes the `ready` of a round whose last member crashed. Exact, so that it is not applied late; who
    /// comes by then opens the door over it, so that it has another version.
    pub(crate) async fn remove_left_over(&self) -> Result<(), Error> {
        let Some(ready) = self.client.exists(&self.ready()).await? else { return Ok(()) };
        let removing = self.client.transaction().delete(&self.ready(), ready.version);
        settled(removing.commit_exactly().await.map(drop))
    }

    /// True when it is let in. Opens the door if enough have come.
    async fn look(&self, own: &str, ready: &Ready) -> Result<bool, Error> {
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
            // It looks again when its node is there again.
            return Ok(DoorState::Closed);
        }
        let earlier = match ready {
            Ready::Passed => return Ok(DoorState::Open),
            Ready::There(Node { stat, .. }) => {
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

    /// True when a member came before the door was opened.
    async fn has_older(&self, own: &str, names: &[String], ready: &Stat) -> Result<bool, Error> {
        // Without an older member `ready` is left over from an earlier round.
        let is_older = async |name: String| {
            let stat = self.client.exists(&self.child(&name)).await?;
            Ok(stat.is_some_and(|stat| stat.czxid < ready.mzxid))
        };
        // It is its own case most of the time.
        if is_older(own.to_owned()).await? {
            return Ok(true);
        }
        let others = names.iter().filter(|name| *name != own).cloned();
        Ok(try_join_all(others.map(is_older)).await?.contains(&true))
    }

    /// Lets everybody in while enough are there, which may be long after they were listed; another member
    /// that does so at the same time does the same. False when one of them has left: then it has to look
    /// again.
    async fn open(&self, own: &str, mut names: Vec<String>, earlier: Option<Stat>) -> Result<bool, Error> {
        // With the own member first its check is among them: once that has left, a write that comes late is
        // refused (decision 11).
        names.sort_by_key(|name| name != own);
        let opening = || {
            let members = names.iter().take(self.members as usize);
            let there = members
                .fold(self.client.transaction(), |opening, name| opening.check(&self.child(name), None));
            match &earlier {
                None => there.create(&self.ready(), self.identity(), CreateMode::Persistent),
                Some(stat) => there.set(&self.ready(), self.identity(), stat.version),
            }
        };
        loop {
            match opening().commit().await {
                // Done twice it is as if it was done once.
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

/// The next look sees what somebody else did first, and what became of a request whose reply was lost.
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
