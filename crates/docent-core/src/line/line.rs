use super::contenders::Contenders;
use super::draw;
use super::hold::Hold;
use super::place::Place;
use super::sides::{Role, Sides};
use super::turn::WaitError;
use crate::cleanup::Leaving;
use crate::client::Client;
use crate::client::config::ParentKind;
use crate::client::generation::SessionGeneration;
use crate::error::Error;
use crate::guard::Fence;
use crate::node::NodePath;
use crate::time::Timestamp;
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A line of tickets: the children of one node, in the order of their numbers.
#[derive(Debug, Clone)]
pub struct Line(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    client: Client,
    /// As the user wrote it.
    path: String,
    full: String,
    /// Label of its metrics.
    recipe: &'static str,
    /// Marker before the number in a ticket's name.
    marker: &'static str,
    /// Kinds of nodes that count in it.
    contenders: Contenders,
    /// Side of its tickets, in a line of readers and writers.
    side: Option<Role>,
    /// Kind of node that the line's own node is made as.
    kind: ParentKind,
    /// Set when children that are no contenders were reported.
    reported: AtomicBool,
}

impl Inner {
    fn new(client: &Client, path: &str, recipe: &'static str, marker: &'static str) -> Result<Self, Error> {
        let path = NodePath::new("line", path)?;
        let full = client.core().namespace.join(path.as_str());
        Ok(Self {
            client: client.clone(),
            path: path.into(),
            full,
            recipe,
            marker,
            contenders: Contenders::of([(marker, Role::Exclusive)]),
            side: None,
            kind: client.core().config.parents,
            reported: AtomicBool::new(false),
        })
    }
}

/// Tells lines apart within a process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LineKey {
    client: u64,
    path: String,
    marker: &'static str,
}

impl Line {
    /// The line at `path`, whose tickets have `marker` before their number (as `lock-`). `recipe` is the
    /// label of its metrics.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule or is the root.
    pub fn new(
        client: &Client,
        path: &str,
        recipe: &'static str,
        marker: &'static str,
    ) -> Result<Self, Error> {
        Ok(Self(Arc::new(Inner::new(client, path, recipe, marker)?)))
    }

    /// As [`new`](Self::new), but its node, where there is none yet, is made as one that stays when nobody is
    /// in the line.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn lasting(
        client: &Client,
        path: &str,
        recipe: &'static str,
        marker: &'static str,
    ) -> Result<Self, Error> {
        let inner = Inner::new(client, path, recipe, marker)?;
        Ok(Self(Arc::new(Inner { kind: ParentKind::Persistent, ..inner })))
    }

    /// Both sides of a line of writers and readers: the first one's tickets wait for everybody ahead, the
    /// second one's only for those of the first. Each has a marker of its own.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn sides(
        client: &Client,
        path: &str,
        recipe: &'static str,
        exclusive: &'static str,
        shared: &'static str,
    ) -> Result<(Self, Self), Error> {
        let side = |marker, own| {
            let inner = Inner::new(client, path, recipe, marker)?;
            let contenders = Contenders::of([(exclusive, Role::Exclusive), (shared, Role::Shared)]);
            Ok(Self(Arc::new(Inner { contenders, side: Some(own), ..inner })))
        };
        Ok((side(exclusive, Role::Exclusive)?, side(shared, Role::Shared)?))
    }

    /// The same line, in which nodes of others count as well: those with `marker` before their number. A side
    /// waits for them as for its own of that role; in a line without sides everybody is exclusive.
    ///
    /// # Errors
    /// `InvalidInput` when the marker is empty, contains '/', ends with a digit or counts already.
    pub fn with_neighbours(&self, marker: impl Into<String>, role: Role) -> Result<Self, Error> {
        let Inner { client, path, full, recipe, marker: own, contenders, side, kind, reported: _ } = &*self.0;
        let role = if side.is_some() { role } else { Role::Exclusive };
        Ok(Self(Arc::new(Inner {
            client: client.clone(),
            path: path.clone(),
            full: full.clone(),
            recipe,
            marker: own,
            contenders: contenders.clone().with(marker.into(), role)?,
            side: *side,
            kind: *kind,
            reported: AtomicBool::new(false),
        })))
    }

    /// The client it belongs to.
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    /// The path, as it was given.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// True for lines of the same client.
    pub fn shares_client(&self, other: &Self) -> bool {
        self.0.client.core().id == other.0.client.core().id
    }

    /// Equal for lines of the same client at the same path, with the same marker.
    pub fn key(&self) -> LineKey {
        LineKey { client: self.0.client.core().id, path: self.0.full.clone(), marker: self.0.marker }
    }

    /// The path as the servers know it: with chroot and namespace.
    pub(super) fn full_path(&self) -> &str {
        &self.0.full
    }

    /// Place of the ticket `own` among `names`. Names that are no contender's are ignored, and reported once.
    pub(super) fn place(&self, own: &str, names: &[String]) -> Place {
        let foreign = names.iter().find(|name| self.contender(name).is_none());
        if let Some(foreign) = foreign
            && !self.0.reported.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                path = self.path(),
                foreign,
                "the line has children that are no contenders: ignored"
            );
        }
        match self.sides_of() {
            None => Place::find(own, names, &self.0.contenders),
            Some(sides) => sides.find(own, names),
        }
    }

    /// Place of the ticket `own` when the numbers tell no order, by the transactions that created the
    /// contenders.
    pub(super) fn place_by_creation(&self, own: &str, created: &[(i64, String)]) -> Place {
        match self.sides_of() {
            None => Place::find_by_creation(own, created),
            Some(sides) => sides.find_by_creation(own, created),
        }
    }

    fn sides_of(&self) -> Option<Sides<'_>> {
        self.0.side.map(|own| Sides { contenders: &self.0.contenders, own })
    }

    /// The number and role of a contender; `None` for names of others.
    pub(super) fn contender(&self, name: &str) -> Option<(i32, Role)> {
        self.0.contenders.find(name)
    }

    /// True when a ticket waits for a contender of this role that is ahead of it.
    pub(super) fn waits_for(&self, role: Role) -> bool {
        self.sides_of().is_none_or(|sides| sides.waits_for(role))
    }

    /// Role of its tickets beside others.
    pub(super) fn role(&self) -> Role {
        self.0.side.unwrap_or(Role::Exclusive)
    }

    pub(super) fn recipe(&self) -> &'static str {
        self.0.recipe
    }

    pub(super) fn kind(&self) -> ParentKind {
        self.0.kind
    }

    pub(super) fn marker(&self) -> &'static str {
        self.0.marker
    }

    /// Takes a ticket. Its node holds `data`, or the client's identity without.
    ///
    /// # Errors
    /// `Timeout`, `NoAuth`, `TooLarge`, `SequenceExhausted`, `ShortLease`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line: the ticket's node is deleted.
    pub async fn take_ticket(&self, data: Option<Bytes>) -> Result<Ticket, Error> {
        draw::draw(self, data).await
    }

    /// Takes a ticket and waits for its turn, however long that is; takes another when the ticket is gone
    /// before that, with its session or by somebody else's hand. An outage of the servers is waited out,
    /// whether there is a ticket yet or not.
    ///
    /// # Errors
    /// As [`take_ticket`](Self::take_ticket) and [`Ticket::wait`], without `Gone` and what [passes by
    /// itself](Self::wait_out).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line: the ticket's node is deleted.
    pub async fn acquire(&self, data: Option<Bytes>) -> Result<Hold, Error> {
        loop {
            let turn = match self.take_ticket(data.clone()).await {
                Ok(ticket) => ticket.wait().await,
                Err(error) => Err(error.into()),
            };
            match turn {
                Ok(hold) => return Ok(hold),
                Err(WaitError::Gone) => {
                    tracing::debug!(path = self.path(), "the ticket is gone, taking a new one");
                }
                Err(WaitError::Core(error)) => self.wait_out(error).await?,
            }
        }
    }

    /// Waits for so long, or until the client is closed: before something is tried again.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn pause(&self, duration: Duration) {
        tokio::select! {
            () = tokio::time::sleep(duration) => {}
            () = self.client().core().closing.cancelled() => {}
        }
    }

    /// The part of the session timeout that leases leave unused, as the servers granted it; `None` before the
    /// first link.
    pub fn lease_margin(&self) -> Option<Duration> {
        let generation = self.client().core().generation();
        Some(&generation.lease).filter(|lease| !lease.timeout().is_zero()).map(|lease| lease.margin())
    }

    /// Deletes the line's node if nobody is in the line, so that numbers begin at 0 again. Fences go on
    /// increasing.
    ///
    /// # Errors
    /// `NotEmpty` when somebody is in the line, or something else is below it; `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe: doing it again does no harm.
    pub async fn reset(&self) -> Result<(), Error> {
        self.client().ensure_absent(self.path()).await
    }
}

/// A place in a line. It is kept until it is dropped, its node is deleted or its session ends.
///
/// # On drop
/// The node is deleted: submitted in order with other calls, and tried until it is done. Never blocks or
/// panics, also outside a runtime.
#[must_use = "dropping a ticket gives up the place in the line"]
pub struct Ticket {
    pub(super) line: Line,
    pub(super) generation: Arc<SessionGeneration>,
    /// Full path of the node.
    pub(super) path: String,
    pub(super) czxid: i64,
    pub(super) drawn: Timestamp,
    /// Place in the listing that was made together with the ticket.
    pub(super) place: Place,
    /// Set when the delete of the node was submitted.
    pub(super) left: AtomicBool,
    /// Number of contenders ahead in that listing, if the ticket was in it.
    pub(super) ahead: Option<usize>,
}

impl Ticket {
    /// The path of the ticket's node.
    pub fn path(&self) -> String {
        self.line.client().core().namespace.relative(&self.path)
    }

    /// The fence that the ticket's guard has or would have.
    pub fn fence(&self) -> Fence {
        Fence::from_czxid(self.czxid)
    }

    /// Submits the delete of the node; `None` when that was done before. A drop of the returned `Leaving`
    /// hands the rest to the cleanup worker.
    pub(super) fn leave(&self) -> Option<Leaving> {
        let left = self.left.swap(true, Ordering::AcqRel);
        (!left).then(|| Leaving::new(Arc::clone(&self.generation), self.path.clone()))
    }

    pub(super) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        drop(self.leave());
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("path", &self.path)
            .field("generation", &self.generation.number)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}
