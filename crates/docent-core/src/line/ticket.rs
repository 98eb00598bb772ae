use super::draw::{list_request, refusal};
use super::position::Position;
use super::predecessor::LineWatches;
use super::{Line, predecessor};
use crate::cleanup::{Deletion, OwnedNode};
use crate::error::{Error, ErrorKind};
use crate::guard::{Beginning, Fence, SessionGeneration};
use crate::hold::Hold;
use crate::session::context::{Stop, answered};
use crate::session::{Lane, Outcome, Pending, Reply, SessionEnd, Watch};
use crate::time::Timestamp;
use bytes::Bytes;
use docent_proto::{Code, MultiOp, Request, Response};
use std::fmt;
use std::sync::Arc;
use tracing::Span;

/// Reason why a ticket did not become a hold.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The ticket's node was deleted or its session ended. The caller takes a new ticket.
    #[error("wait: the ticket's node was deleted or its session ended")]
    Gone,
    /// Any other error.
    #[error(transparent)]
    Core(#[from] Error),
}

impl WaitError {
    /// Returns true if the same call may succeed later, with a new ticket.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Gone => true,
            Self::Core(error) => error.is_retryable(),
        }
    }

    /// Returns true if the servers may have applied a write although the call failed.
    pub fn may_have_applied(&self) -> bool {
        matches!(self, Self::Core(error) if error.may_have_applied())
    }

    /// The path of the operation, if known.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Gone => None,
            Self::Core(error) => error.path(),
        }
    }
}

impl From<WaitError> for Error {
    fn from(error: WaitError) -> Self {
        match error {
            WaitError::Core(error) => error,
            WaitError::Gone => Self::of_recipe(ErrorKind::SessionChanged, "wait", error),
        }
    }
}

/// Next step of a ticket on the way to its turn.
pub(super) enum Step {
    /// List the line again.
    List,
    /// Act on this place.
    At(Position),
    /// Prove that the own node exists: no contender can be ahead any more.
    Prove,
    /// Prove that the own node exists, and list in the same round trip: other contenders may be ahead.
    ProveAndList,
    /// List the line, and watch this node, the predecessor: another contender ahead has left.
    ListAndWatch(String),
    /// Find out which of these contenders ahead remain.
    CheckAhead(Vec<String>),
}

/// A place in a line. The place is kept until the ticket is dropped, its node is deleted or its session ends.
///
/// # On drop
/// The node is deleted. The delete is submitted in order with other calls, and retried until it succeeds or
/// the session has ended. Dropping never blocks or panics, even outside a runtime.
///
/// # Examples
/// ```no_run
/// # use docent_core::recipe::{Line, Hold, WaitError};
/// # async fn example(line: &Line) -> Result<Hold, WaitError> {
/// let ticket = line.take_ticket(None).await?;
/// println!("{} has {:?} contenders ahead", ticket.path(), ticket.ahead());
/// let hold = ticket.wait().await?;
/// # Ok(hold) }
/// ```
#[must_use = "dropping a ticket gives up the place in the line"]
pub struct Ticket {
    pub(super) line: Line,
    pub(super) generation: Arc<SessionGeneration>,
    pub(super) node: Arc<OwnedNode>,
    /// Data of the node.
    pub(super) data: Arc<Bytes>,
    pub(super) taken: Timestamp,
    /// Position in the listing that was sent together with the create.
    pub(super) position: Position,
    /// Number of contenders ahead in that listing, if the ticket was in it.
    pub(super) ahead: Option<usize>,
    /// Set when the ticket became a hold.
    pub(super) held: bool,
}

impl Ticket {
    /// The path of the ticket's node.
    pub fn path(&self) -> String {
        self.line.client().shared().namespace.relative(&self.node.path)
    }

    /// The fence that the ticket's guard has or would have.
    pub fn fence(&self) -> Fence {
        Fence::from_czxid(self.node.czxid)
    }

    /// Number of contenders that were ahead when the ticket was taken; `None` if unknown. The number may be
    /// smaller by now.
    pub fn ahead(&self) -> Option<usize> {
        self.ahead
    }

    /// Waits until no contender is ahead, and turns the ticket into a hold.
    ///
    /// A ticket first waits for the contender before its predecessor. When that contender leaves, the ticket
    /// lists the line and watches the predecessor. A release therefore wakes two waiters, or all readers
    /// behind a writer; the readers need not list the line.
    ///
    /// The hold is granted without another round trip if all of the following are true; otherwise a check of
    /// the own node comes first (decision 18):
    ///
    /// - The ticket saw the *deletion* of the only contender ahead (for a reader: of the only writer), or a
    ///   listing has no contender ahead.
    /// - No event arrived for the own node.
    /// - The link is the one on which the watches were set.
    /// - The newest acknowledged write is younger than a sixth of the session timeout. While an exclusive
    ///   ticket is next in line, it is checked by a write often enough to ensure this.
    ///
    /// Source: the lock recipe of ZooKeeper's documentation, with Curator's node layout.
    ///
    /// # Errors
    /// [`WaitError::Gone`] if the ticket's node was deleted or its session ended. `ShortLease` if the session
    /// timeout is below four ticks of the server; `SequenceExhausted`, `NoAuth`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses your place in the queue.
    pub async fn wait(mut self) -> Result<Hold, WaitError> {
        self.refuse_hold()?;
        let mut step = match std::mem::replace(&mut self.position, Position::Unlisted) {
            // A ticket that was kept for a while may have lost its node since. Without a proof, it is first
            // only if a write is fresh and the listing is recent.
            Position::First if !self.acked_recently() || !self.listed_recently() => Step::Prove,
            position => Step::At(position),
        };
        let mut watches = LineWatches::default();
        loop {
            // The end of the own node may have been reported while another answer was awaited.
            if matches!(step, Step::At(Position::First))
                && let Some(fired) = watches.own_fired()
            {
                step = predecessor::own_fired(&self, fired, &mut watches)?;
            }
            step = match step {
                Step::At(Position::First) => match self.hold(watches.hand_over()) {
                    Ok(hold) => return Ok(hold),
                    // The lease ran out since the last acknowledged write; a check renews the lease.
                    Err(ticket) => {
                        self = ticket;
                        self.refuse_hold()?;
                        Step::Prove
                    }
                },
                Step::At(Position::Behind { predecessor, further }) => {
                    predecessor::wait_for(&self, predecessor, further, &mut watches).await?
                }
                Step::At(Position::Missing) => return Err(WaitError::Gone),
                Step::At(Position::Unordered(contenders)) => {
                    match self.position_by_creation(contenders).await? {
                        // These reads may be as stale as a listing, and do not renew the lease.
                        Position::First => Step::Prove,
                        position => Step::At(position),
                    }
                }
                Step::At(Position::Unlisted) | Step::List => self.list_for_step().await?,
                Step::ListAndWatch(predecessor) => self.list_and_watch(predecessor, &mut watches).await?,
                Step::Prove => {
                    self.check_own_node().await?;
                    Step::At(Position::First)
                }
                Step::ProveAndList => {
                    let check = self.submit_check();
                    let list = self.generation.session.submit(list_request(&self.line), Lane::Call);
                    // The listing was requested after the check, which is a write through a quorum, so it is
                    // no older than the check. `First` needs no further proof.
                    match self.proven(check.await).await? {
                        true => Step::At(self.position_in(list.await).await?),
                        false => Step::ProveAndList,
                    }
                }
                // Boxed because this step is rare: few readers have several writers ahead.
                Step::CheckAhead(ahead) => Box::pin(self.check_ahead(ahead, &mut watches)).await?,
            };
        }
    }

    /// Turns the ticket into a hold if no contender is ahead now; otherwise gives up the place and returns
    /// `None`.
    ///
    /// # Errors
    /// Same as [`wait`](Self::wait).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses your place in the queue.
    pub async fn try_now(mut self) -> Result<Option<Hold>, WaitError> {
        let was_listed_with_draw = self.position == Position::First;
        if self.position == Position::Unlisted {
            self.position = self.list().await?;
        }
        if let Position::Unordered(contenders) = &self.position {
            self.position = self.position_by_creation(contenders.clone()).await?;
        }
        match self.position {
            Position::First if !was_listed_with_draw => {
                // A separate listing is a read: a partitioned server may return a stale one (decision 3).
                self.check_own_node().await?;
                self.wait().await.map(Some)
            }
            Position::First => self.wait().await.map(Some),
            Position::Missing => Err(WaitError::Gone),
            Position::Behind { .. } | Position::Unlisted | Position::Unordered(_) => Ok(None),
        }
    }

    /// Turns the ticket into a hold if the lease is running and the client is not stopping. The hold takes
    /// over the ticket's watch on its own node, if there is one.
    pub(super) fn hold(mut self, own: Option<Box<Watch>>) -> Result<Hold, Self> {
        let line = &self.line;
        if line.refuse_stopping().is_err() {
            return Err(self);
        }
        let beginning = Beginning::of(Arc::clone(&self.data));
        let Some(state) = self.generation.hold(&self.node, line.recipe(), beginning, own) else {
            return Err(self);
        };
        line.log_rejoined();
        Span::current().record("docent.fence", tracing::field::display(state.fence));
        line.recipe().metrics.acquired(self.generation.clock.now().since(self.taken));
        self.held = true;
        Ok(Hold::new(line.client().clone(), line.path().to_owned(), line.role(), state))
    }

    pub(super) fn name(&self) -> &str {
        self.node.path.rsplit('/').next().unwrap_or_default()
    }
}

// Requests of a ticket about its line and its own node, repeated until the servers answer.
impl Ticket {
    pub(super) async fn list(&self) -> Result<Position, WaitError> {
        let listed = self.generation.session.submit(list_request(&self.line), Lane::Call).await;
        self.position_in(listed).await
    }

    pub(super) async fn position_in(&self, mut listed: Outcome) -> Result<Position, WaitError> {
        loop {
            if let Some(reply) = self.reply(listed).await? {
                return match reply.result {
                    Ok(Response::Children { names, .. }) => {
                        // This listing may contain a node of a lost create that was applied late (decision
                        // 11).
                        self.generation.lost_creates.observe_listing(self.line.full_path(), &names);
                        self.line.refuse_other_kinds(Some(self.name()), &names)?;
                        Ok(self.line.position(self.name(), &names))
                    }
                    // If the line does not exist, neither does the ticket.
                    Ok(_) | Err(Code::NO_NODE) => Err(WaitError::Gone),
                    Err(code) => Err(self.line.refused(code).into()),
                };
            }
            listed = self.generation.session.submit(list_request(&self.line), Lane::Call).await;
        }
    }

    /// Finds the place by the transactions that created the contenders: one read for each, all in one round
    /// trip.
    pub(super) async fn position_by_creation(&self, contenders: Vec<String>) -> Result<Position, WaitError> {
        let reads = contenders.into_iter().map(|name| {
            let stat = self.submit_exists(&name);
            (name, stat)
        });
        let mut created = Vec::new();
        for (name, stat) in reads.collect::<Vec<_>>() {
            match self.reply(stat.await).await? {
                None => return Ok(Position::Unlisted),
                Some(reply) => {
                    // A contender that left since the listing may have downgraded, and be in the line under
                    // another name. The line is listed again.
                    let Ok(Response::Stat(stat)) = reply.result else { return Ok(Position::Unlisted) };
                    created.push((stat.czxid, name));
                }
            }
        }
        Ok(self.line.position_by_creation(self.name(), &created))
    }

    fn submit_exists(&self, name: &str) -> Pending {
        let path = format!("{}/{name}", self.line.full_path());
        self.generation.session.submit(Request::Exists { path, watch: false }, Lane::Call)
    }

    /// Returns the reply, or `None` if the caller should send the request again: all requests about a line
    /// can be repeated. A wait that may have taken hours is not given up because a server or the client's own
    /// queue is overloaded.
    pub(super) async fn reply(&self, outcome: Outcome) -> Result<Option<Reply>, WaitError> {
        answered(outcome).await.map_err(|stop| match stop {
            Stop::Ended(end) => self.ended(end),
            Stop::TooLarge { size, limit } => {
                Error::too_large(self.line.operation(), size, limit).at(self.line.path()).into()
            }
        })
    }

    pub(super) fn ended(&self, end: SessionEnd) -> WaitError {
        match end {
            SessionEnd::Closed => self.error(ErrorKind::Closed).into(),
            SessionEnd::AuthFailed => self.error(ErrorKind::AuthFailed).into(),
            SessionEnd::Expired | SessionEnd::Abandoned | SessionEnd::RolledBack => WaitError::Gone,
        }
    }

    pub(super) fn error(&self, kind: ErrorKind) -> Error {
        Error::new(kind, self.line.operation()).at(self.line.path())
    }

    /// Returns true if the ticket was taken so recently that its listing still counts.
    pub(super) fn listed_recently(&self) -> bool {
        self.generation.clock.now().since(self.taken) < self.generation.lease.timing().pause()
    }

    /// Returns true if a write was acknowledged so recently that the session is certainly alive.
    pub(super) fn acked_recently(&self) -> bool {
        let lease = &self.generation.lease;
        // `proof` is the time at which the newest write counts as sent. This is earlier than the actual time
        // if the servers had received little before the write. A new hold needs a write that is younger than
        // the pace of heartbeats, although the lease lasts longer, so that the hold begins with most of its
        // lease (decision 3).
        self.generation.clock.now().since(lease.proof()) < lease.timing().pulse()
    }

    /// Checks through a quorum that the own node exists. The acknowledgement renews the lease.
    pub(super) async fn check_own_node(&self) -> Result<(), WaitError> {
        while !self.proven(self.submit_check().await).await? {}
        self.lease_begun().await;
        Ok(())
    }

    /// Waits until an answered check gives a lease.
    pub(super) async fn lease_begun(&self) {
        let lease = &self.generation.lease;
        if lease.mark(self.generation.clock.now()).is_none() {
            // The servers had received so little from this client before the check that it gave no lease.
            // Another check right away would not either: answers count only after a relay interval (decision
            // 3).
            tokio::time::sleep(lease.timing().pause()).await;
        }
    }

    pub(super) fn submit_check(&self) -> Pending {
        let check = MultiOp::Check { path: self.node.path.clone(), version: -1 };
        self.generation.session.submit(Request::Multi(vec![check]), Lane::Call)
    }

    /// Returns true if the check found all its nodes; false if the caller should send the check again.
    pub(super) async fn proven(&self, checked: Outcome) -> Result<bool, WaitError> {
        let Some(reply) = self.reply(checked).await? else { return Ok(false) };
        let code = match reply.result {
            Ok(Response::Multi(results)) => refusal(&results),
            Ok(_) => None,
            Err(code) => Some(code),
        };
        match code {
            None => Ok(true),
            Some(Code::NO_NODE) => Err(WaitError::Gone),
            Some(code) => Err(self.line.refused(code).into()),
        }
    }

    /// Refuses to hold if the session's lease is too short, or if the client's shutdown has progressed too
    /// far.
    pub(super) fn refuse_hold(&self) -> Result<(), Error> {
        self.line.refuse_stopping()?;
        let accepted = self.line.client().shared().config.accept_short_lease;
        match self.generation.refuses_guards(accepted) {
            Some(detail) => Err(self.error(ErrorKind::ShortLease).because(detail)),
            None => Ok(()),
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // A hold made from the ticket deletes the node itself.
        if !self.held && self.node.begin_deletion() {
            drop(Deletion::new(Arc::clone(&self.node)));
        }
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("path", &self.node.path)
            .field("generation", &self.generation.number)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
