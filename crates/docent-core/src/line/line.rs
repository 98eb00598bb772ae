use super::name::Contenders;
use super::position::Position;
use super::sides::Sides;
use super::{Ticket, WaitError, draw};
use crate::client::{Client, ParentKind, Recipe, RecipeKind, debug_handle};
use crate::error::{Error, ErrorKind};
use crate::guard::Role;
use crate::hold::Hold;
use crate::node::{NodePath, is_own_name};
use crate::telemetry;
use bytes::Bytes;
use docent_proto::Code;
use std::error::Error as _;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tracing::{Instrument, Span};

/// A line of tickets: the children of one node, in the order of their numbers.
///
/// Nothing else may be created below that node, except by the recipe [itself](Self::with_own_child). The line
/// ignores other children and logs a warning about the first.
///
/// # Examples
/// ```no_run
/// use docent_core::recipe::{Line, RecipeKind};
/// use docent_core::{Client, Error};
///
/// static IMPORT: RecipeKind = RecipeKind::new("import", "run");
///
/// /// Runs the import in one process at a time.
/// async fn import(client: &Client) -> Result<(), Error> {
///     let line = Line::new(client, "/imports/line", &IMPORT, "import-")?;
///     let hold = line.acquire(None).await?;
///     if hold.run(async { /* the import */ }).await.is_ok() {
///         hold.release().await?;
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Line(Arc<Inner>);

struct Inner {
    client: Client,
    /// As the user wrote it.
    path: String,
    full: String,
    recipe: Recipe,
    /// Marker before the number in a ticket's name.
    marker: &'static str,
    /// Kinds of nodes that count in it.
    contenders: Contenders,
    /// Side of its tickets, in a line of readers and writers.
    side: Option<Role>,
    /// Kind of node that the line's own node is made as.
    kind: ParentKind,
    /// Name of a child that the recipe keeps beside the tickets.
    own_child: Option<&'static str>,
    /// True when its nodes hold data of the user's instead of identities.
    has_payload: bool,
    /// Set when children that are no contenders were reported.
    reported: AtomicBool,
    /// Set when it was told that it does not go on, until it does.
    stuck: AtomicBool,
}

impl Inner {
    fn new(
        client: &Client,
        path: &str,
        recipe: &'static RecipeKind,
        marker: &'static str,
    ) -> Result<Self, Error> {
        let path = NodePath::new(recipe.label(), path)?;
        let shared = client.shared();
        let full = shared.namespace.join(path.as_str());
        Ok(Self {
            client: client.clone(),
            path: path.into(),
            full,
            recipe: shared.recipe(recipe),
            marker,
            contenders: Contenders::of([(marker, Role::Exclusive)]),
            side: None,
            kind: client.shared().config.parents,
            own_child: None,
            has_payload: false,
            reported: AtomicBool::new(false),
            stuck: AtomicBool::new(false),
        })
    }

    fn copy(&self) -> Self {
        Self {
            client: self.client.clone(),
            path: self.path.clone(),
            full: self.full.clone(),
            recipe: self.recipe.clone(),
            contenders: self.contenders.clone(),
            reported: AtomicBool::new(false),
            stuck: AtomicBool::new(false),
            ..*self
        }
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
    /// The line of `recipe` at `path`, whose tickets have `marker` before their number (as `lock-`).
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule or is the root.
    pub fn new(
        client: &Client,
        path: &str,
        recipe: &'static RecipeKind,
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
        recipe: &'static RecipeKind,
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
        recipe: &'static RecipeKind,
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
        let role = if self.0.side.is_some() { role } else { Role::Exclusive };
        let contenders = self.0.contenders.clone().with(marker.into(), role)?;
        Ok(Self(Arc::new(Inner { contenders, ..self.0.copy() })))
    }

    /// The same line, whose nodes hold data of the user's instead of identities: its
    /// [participants](Self::participants) do not print it.
    #[must_use]
    pub fn with_payload(&self) -> Self {
        Self(Arc::new(Inner { has_payload: true, ..self.0.copy() }))
    }

    /// The same line, whose node has a child called `name` beside the tickets, in which the recipe keeps its
    /// state. No warning names this child.
    #[must_use]
    pub fn with_own_child(&self, name: &'static str) -> Self {
        Self(Arc::new(Inner { own_child: Some(name), ..self.0.copy() }))
    }

    pub(super) fn has_payload(&self) -> bool {
        self.0.has_payload
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
        self.0.client.shared().id == other.0.client.shared().id
    }

    /// Equal for lines of the same client at the same path, with the same marker.
    pub fn key(&self) -> LineKey {
        LineKey { client: self.0.client.shared().id, path: self.0.full.clone(), marker: self.0.marker }
    }

    /// The path as the servers know it: with chroot and namespace.
    pub(super) fn full_path(&self) -> &str {
        &self.0.full
    }

    /// Position of the ticket `own` among `names`. Names that are no contender's are ignored, and reported
    /// once.
    pub(super) fn position(&self, own: &str, names: &[String]) -> Position {
        let is_known = |name: &str| {
            let is_own_child = self.0.own_child == Some(name) && !planted!(OwnChildIsForeign);
            self.contender(name).is_some() || is_own_name(name) || is_own_child
        };
        let foreign = names.iter().find(|name| !is_known(name));
        if let Some(foreign) = foreign
            && !self.0.reported.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                client = self.client().label(),
                path = self.path(),
                foreign,
                "the line has children that are no contenders: ignored"
            );
        }
        match self.sides_of() {
            None => Position::find(own, names, &self.0.contenders),
            Some(sides) => sides.find(own, names),
        }
    }

    /// Position of the ticket `own` when the numbers tell no order, by the transactions that created the
    /// contenders.
    pub(super) fn position_by_creation(&self, own: &str, created: &[(i64, String)]) -> Position {
        match self.sides_of() {
            None => Position::find_by_creation(own, created),
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

    pub(super) fn operation(&self) -> &'static str {
        self.recipe().acquire()
    }

    /// Error of a request about a ticket that was refused with `code`.
    pub(super) fn refused(&self, code: Code) -> Error {
        Error::from_code(code, self.operation()).at(self.path()).needing("READ")
    }

    pub(super) fn recipe(&self) -> &Recipe {
        &self.0.recipe
    }

    /// Refuses what the client's shutdown has come too far for.
    pub(super) fn refuse_stopping(&self) -> Result<(), Error> {
        let shared = self.client().shared();
        match shared.refuses(self.recipe().stage()) {
            true => Err(Error::new(shared.closed(), self.operation()).at(self.path())),
            false => Ok(()),
        }
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
    /// `MixedKinds` when one of another kind is in the line before it; `Timeout`, `NoAuth`, `TooLarge`,
    /// `SequenceExhausted`, `ShortLease`, `Closed`.
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
    pub fn acquire(&self, data: Option<Bytes>) -> impl Future<Output = Result<Hold, Error>> + Send {
        self.acquire_telling(data, |_| {})
    }

    /// As [`acquire`](Self::acquire), and tells `taken` of each ticket before it waits for its turn.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    pub fn acquire_telling(
        &self,
        data: Option<Bytes>,
        taken: impl FnMut(&Ticket) + Send,
    ) -> impl Future<Output = Result<Hold, Error>> + Send {
        self.turn(data, taken).instrument(self.acquire_span())
    }

    /// Span of an acquire in this line: open while its turn is waited for. Where nobody listens it is none.
    pub fn acquire_span(&self) -> Span {
        telemetry::acquire_span(self.client().label(), self.recipe().label(), self.path())
    }

    async fn turn(&self, data: Option<Bytes>, mut taken: impl FnMut(&Ticket)) -> Result<Hold, Error> {
        loop {
            let turn = match self.take_ticket(data.clone()).await {
                Ok(ticket) => {
                    taken(&ticket);
                    ticket.wait().await
                }
                Err(error) => Err(error.into()),
            };
            match turn {
                Ok(hold) => return Ok(hold),
                Err(WaitError::Gone) => {
                    tracing::debug!(
                        client = self.client().label(),
                        path = self.path(),
                        "the ticket is gone, taking a new one"
                    );
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
            () = self.client().shared().closing.cancelled() => {}
        }
    }

    /// The part of the session timeout that leases leave unused, as the servers granted it; `None` before the
    /// first link.
    pub fn lease_margin(&self) -> Option<Duration> {
        self.client().lease_margin()
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

    /// Waits out an error that passes by itself, such as an outage of the servers: returns after a pause,
    /// before the caller tries the operation that failed with `error` again. For callers that wait without a
    /// limit of their own, however long others hold them up.
    ///
    /// # Errors
    /// `error`, when waiting does not help.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn wait_out(&self, error: Error) -> Result<(), Error> {
        if !may_pass(&error) {
            return Err(error);
        }
        self.tell_stuck(&error);
        // Different for each, so that they do not come all at once after an outage.
        self.pause(Duration::from_millis(500 + fastrand::u64(..1000))).await;
        Ok(())
    }
}

impl Line {
    /// Tells once that it does not go on in the line, until it [does](Self::tell_going_on).
    fn tell_stuck(&self, error: &Error) {
        let (client, path) = (self.client().label(), self.path());
        if self.0.stuck.swap(true, Ordering::Relaxed) {
            tracing::debug!(client, path, %error, "it still does not go on in the line");
            return;
        }
        let cause = error.source().map(ToString::to_string);
        tracing::warn!(client, path, %error, cause, "it does not go on in the line, trying on");
    }

    pub(super) fn tell_going_on(&self) {
        if self.0.stuck.swap(false, Ordering::Relaxed) {
            tracing::info!(client = self.client().label(), path = self.path(), "it goes on in the line");
        }
    }
}

/// True for an error that goes away by itself.
fn may_pass(error: &Error) -> bool {
    match error.kind() {
        // The client is bound to a session that has ended: that does not pass.
        ErrorKind::SessionChanged => false,
        // Parents were deleted as fast as they were made: that passes. So does a session's lack of room for
        // another node, once others of its nodes are deleted.
        ErrorKind::NoNode | ErrorKind::TooManyEphemerals => true,
        _ => error.is_retryable(),
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "Line", self.path(), self.client()).finish_non_exhaustive()
    }
}
