use super::name::{Contenders, is_in_danger_zone};
use super::position::{Position, Sides};
use super::{Ticket, WaitError, draw};
use crate::client::{Client, ParentKind, Recipe, RecipeKind, debug_handle, full_error};
use crate::error::{Error, ErrorKind};
use crate::hold::{Hold, Role};
use crate::node::{NodePath, is_own_name};
use crate::telemetry;
use bytes::Bytes;
use docent_proto::Code;
use std::any::Any;
use std::error::Error as _;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tracing::{Instrument, Span};

/// A line of tickets: the children of one node, ordered by their numbers.
///
/// Nothing else may be created below that node, except by the recipe [itself](Self::with_own_child). The line
/// ignores other children and logs a warning about the first one.
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
    /// Path as the user wrote it.
    path: String,
    full: String,
    recipe: Recipe,
    /// Marker before the number in the name of a ticket.
    marker: &'static str,
    /// Kinds of nodes that count as contenders.
    contenders: Contenders,
    /// Side of this handle's tickets, in a line of readers and writers.
    side: Option<Role>,
    /// Kind of node that is created for the line itself.
    kind: ParentKind,
    /// Name of a child that the recipe keeps next to the tickets.
    own_child: Option<&'static str>,
    /// True if the nodes hold user data instead of identities.
    has_payload: bool,
    /// Set when children that are not contenders were reported.
    reported: AtomicBool,
    /// Set while the log says that the line is stuck.
    stuck: AtomicBool,
}

impl Inner {
    fn new(
        client: &Client,
        path: &str,
        recipe: &'static RecipeKind,
        marker: &'static str,
    ) -> Result<Self, Error> {
        let path = NodePath::of_recipe(client, recipe.label(), path)?;
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

/// Identifies a line within a process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LineKey {
    client: u64,
    path: String,
    marker: &'static str,
}

impl Line {
    /// Creates the line of `recipe` at `path`, whose tickets have `marker` before their number (for example
    /// `lock-`).
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule, is the root or is [reserved](NodePath::of_recipe).
    pub fn new(
        client: &Client,
        path: &str,
        recipe: &'static RecipeKind,
        marker: &'static str,
    ) -> Result<Self, Error> {
        Ok(Self(Arc::new(Inner::new(client, path, recipe, marker)?)))
    }

    /// Same as [`new`](Self::new), but if the line's node has to be created, it persists when the line is
    /// empty.
    ///
    /// # Errors
    /// Same as [`new`](Self::new).
    pub fn lasting(
        client: &Client,
        path: &str,
        recipe: &'static RecipeKind,
        marker: &'static str,
    ) -> Result<Self, Error> {
        let inner = Inner::new(client, path, recipe, marker)?;
        Ok(Self(Arc::new(Inner { kind: ParentKind::Persistent, ..inner })))
    }

    /// Creates both sides of a line of writers and readers, each with its own marker. Tickets of the first
    /// side wait for all contenders ahead; tickets of the second side wait only for those of the first.
    ///
    /// # Errors
    /// Same as [`new`](Self::new).
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
            Ok::<_, Error>(Self(Arc::new(Inner { contenders, side: Some(own), ..inner })))
        };
        Ok((side(exclusive, Role::Exclusive)?, side(shared, Role::Shared)?))
    }

    /// Returns the same line, in which nodes with `marker` before their number also count as contenders.
    /// `role` is the role of these neighbours: a side waits for them as it does for contenders of that role
    /// in its own line. In a line without sides, all contenders are exclusive.
    ///
    /// # Errors
    /// `InvalidInput` if the marker is empty, contains '/', ends with a digit or is already in use.
    pub fn with_neighbours(&self, marker: impl Into<String>, role: Role) -> Result<Self, Error> {
        let role = if self.0.side.is_some() { role } else { Role::Exclusive };
        let contenders = self.0.contenders.clone().with(marker.into(), role)?;
        Ok(Self(Arc::new(Inner { contenders, ..self.0.copy() })))
    }

    /// Returns the same line, whose nodes hold user data instead of identities. Its
    /// [participants](Self::participants) do not print that data.
    #[must_use]
    pub fn with_payload(&self) -> Self {
        Self(Arc::new(Inner { has_payload: true, ..self.0.copy() }))
    }

    /// Returns the same line, whose node has a child called `name` next to the tickets, in which the recipe
    /// keeps its state. The line logs no warning about this child.
    #[must_use]
    pub fn with_own_child(&self, name: &'static str) -> Self {
        Self(Arc::new(Inner { own_child: Some(name), ..self.0.copy() }))
    }

    pub(super) fn has_payload(&self) -> bool {
        self.0.has_payload
    }

    /// The client of this line.
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    /// The path as given to the constructor.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// Returns true if both lines use the same client.
    pub fn shares_client(&self, other: &Self) -> bool {
        self.0.client.shared().id == other.0.client.shared().id
    }

    /// Returns a key that is equal for lines of the same client at the same path with the same marker.
    pub fn key(&self) -> LineKey {
        LineKey { client: self.0.client.shared().id, path: self.0.full.clone(), marker: self.0.marker }
    }

    /// The path as the servers know it, with chroot and namespace.
    pub fn full_path(&self) -> &str {
        &self.0.full
    }

    /// Returns the position of the ticket `own` among `names`. Names that belong to no contender are ignored,
    /// and reported once.
    pub(super) fn position(&self, own: &str, names: &[String]) -> Position {
        let is_known = |name: &str| {
            let is_own_child = self.0.own_child == Some(name) && !planted!(OwnChildIsForeign);
            self.contender(name).is_some() || is_own_name(name) || is_own_child
        };
        let foreign = names.iter().find(|name| !is_known(name));
        if let Some(foreign) = foreign
            && !self.0.reported.swap(true, Ordering::Relaxed)
        {
            // Event: The node of a lock, semaphore or election has a child that this library did not create.
            // The child is ignored; further such children are not reported.
            // Action: Move the child `foreign` elsewhere, or give the recipe another path.
            tracing::warn!(
                target: "docent::lock",
                client = %self.client().label(),
                path = %self.full_path(),
                foreign,
                "the waiting line's node has children that are not contenders; ignoring them"
            );
        }
        match self.sides_of() {
            None => Position::find(own, names, &self.0.contenders),
            Some(sides) => sides.find(own, names),
        }
    }

    /// Returns the position of the ticket `own` by the transactions that created the contenders, for use if
    /// the numbers give no reliable order.
    pub(super) fn position_by_creation(&self, own: &str, created: &[(i64, String)]) -> Position {
        match self.sides_of() {
            None => Position::find_by_creation(own, created),
            Some(sides) => sides.find_by_creation(own, created),
        }
    }

    fn sides_of(&self) -> Option<Sides<'_>> {
        self.0.side.map(|own| Sides { contenders: &self.0.contenders, own })
    }

    /// Returns the number of contenders among `names` that are ahead of `ticket`; `None` if the ticket is not
    /// among `names`. After the ticket is taken, the number can only decrease.
    pub fn ahead_of(&self, ticket: &Ticket, names: &[String]) -> Option<usize> {
        let (own, _) = self.contender(ticket.name())?;
        // A `Ticket` is never in the danger zone, and contenders in the danger zone were created later.
        let is_ahead = |name: &&String| {
            self.contender(name).is_some_and(|(number, _)| number < own && !is_in_danger_zone(number))
        };
        let is_listed = names.iter().any(|name| name == ticket.name());
        is_listed.then(|| names.iter().filter(is_ahead).count())
    }

    /// Returns the number and role of a contender; `None` if the name belongs to no contender.
    pub(super) fn contender(&self, name: &str) -> Option<(i32, Role)> {
        self.0.contenders.find(name)
    }

    /// Returns true if a ticket waits for a contender of this role that is ahead.
    pub(super) fn waits_for(&self, role: Role) -> bool {
        self.sides_of().is_none_or(|sides| sides.waits_for(role))
    }

    /// Role of this line's tickets.
    pub fn role(&self) -> Role {
        self.0.side.unwrap_or(Role::Exclusive)
    }

    pub(super) fn operation(&self) -> &'static str {
        self.recipe().kind.acquire
    }

    /// Builds the error of a request about a ticket that the servers refused with `code`.
    pub(super) fn refused(&self, code: Code) -> Error {
        Error::from_code(code, self.operation()).at(self.path()).needing("READ")
    }

    pub(super) fn recipe(&self) -> &Recipe {
        &self.0.recipe
    }

    /// Fails if the client's shutdown has progressed too far for this recipe.
    pub(super) fn refuse_stopping(&self) -> Result<(), Error> {
        let shared = self.client().shared();
        match shared.refuses(self.recipe().kind.stage) {
            true => Err(Error::new(shared.closed(), self.operation()).at(self.path())),
            false => Ok(()),
        }
    }

    pub(super) fn kind(&self) -> ParentKind {
        self.client().shared().parents_as(self.0.kind)
    }

    pub(super) fn marker(&self) -> &'static str {
        self.0.marker
    }

    /// Takes a ticket. Its node holds `data`, or the client's identity if there is none.
    ///
    /// # Errors
    /// `MixedKinds` if a contender of another kind is ahead; `Timeout`, `NoAuth`, `TooLarge`,
    /// `SequenceExhausted`, `ShortLease`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses your place in the queue: the ticket's node is
    /// deleted.
    pub async fn take_ticket(&self, data: Option<Bytes>) -> Result<Ticket, Error> {
        draw::draw(self, data).await
    }

    /// Takes a ticket and waits for its turn, as long as necessary.
    ///
    /// If the ticket is lost before its turn, because its session expired or another client deleted its node,
    /// a new ticket is taken. An outage of the servers is waited out, with or without a ticket.
    ///
    /// # Errors
    /// Same as [`take_ticket`](Self::take_ticket) and [`Ticket::wait`], except for `Gone` and [transient
    /// errors](Self::wait_out).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses your place in the queue: the ticket's node is
    /// deleted.
    pub fn acquire(&self, data: Option<Bytes>) -> impl Future<Output = Result<Hold, Error>> + Send {
        self.acquire_notifying(data, |_| {})
    }

    /// Same as [`acquire`](Self::acquire), and calls `taken` with each ticket before waiting for its turn.
    ///
    /// # Errors
    /// Same as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// Same as [`acquire`](Self::acquire).
    pub fn acquire_notifying(
        &self,
        data: Option<Bytes>,
        taken: impl FnMut(&Ticket) + Send,
    ) -> impl Future<Output = Result<Hold, Error>> + Send {
        self.turn(data, taken).instrument(self.acquire_span())
    }

    /// Returns the span of an acquire in this line, open while the acquire waits for its turn. The span is
    /// disabled if no subscriber is interested.
    pub fn acquire_span(&self) -> Span {
        telemetry::acquire_span(self.client().label(), self.recipe().kind.label(), self.path())
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
                    // Event: The node of a waiting contender disappeared, because its session expired or
                    // another client deleted the node. The client takes a new place at the end of the queue.
                    tracing::debug!(
                        target: "docent::lock",
                        client = %self.client().label(),
                        path = %self.full_path(),
                        "lost the place in the queue; taking a new one"
                    );
                }
                Err(WaitError::Core(error)) => self.wait_out(error).await?,
            }
        }
    }

    /// Waits for `duration` before a retry, or until the client is closed.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn pause(&self, duration: Duration) {
        tokio::select! {
            () = tokio::time::sleep(duration) => {}
            () = self.client().shared().closing.cancelled() => {}
        }
    }

    /// The part of the session timeout, as granted by the servers, that leases leave unused; `None` before
    /// the first link.
    pub fn lease_margin(&self) -> Option<Duration> {
        self.client().lease_margin()
    }

    /// Deletes the line's node if the line is empty, which resets its sequence numbers to 0. Fences keep
    /// increasing.
    ///
    /// # Errors
    /// `NotEmpty` if a contender or any other node is below the line's node; `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe: repeating the call does no harm.
    pub async fn reset(&self) -> Result<(), Error> {
        self.client().ensure_absent(self.path()).await
    }

    /// Pauses after a transient error, such as an outage of the servers, so that the caller can then retry
    /// the operation that failed with `error`. Meant for callers that wait without a limit.
    ///
    /// # Errors
    /// `error`, if waiting does not help.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn wait_out(&self, error: Error) -> Result<(), Error> {
        if !is_transient(&error) {
            return Err(error);
        }
        self.log_stuck(&error);
        // A random pause, so that clients do not all retry at the same moment after an outage.
        self.pause(Duration::from_millis(500 + fastrand::u64(..1000))).await;
        Ok(())
    }
}

impl Line {
    /// Logs once that the line is stuck, until it [recovers](Self::log_rejoined).
    fn log_stuck(&self, error: &Error) {
        let (client, path) = (self.client().label(), self.full_path());
        if self.0.stuck.swap(true, Ordering::Relaxed) {
            // Event: Another attempt to join the line of a lock, semaphore or election failed. The client
            // retries.
            tracing::debug!(target: "docent::lock", %client, %path, error = %full_error(self.client(), error), "still cannot join the waiting line; retrying");
            return;
        }
        let cause = error.source().map(ToString::to_string);
        // Event: The client cannot join the line of a lock, semaphore or election. It retries until it
        // succeeds.
        // Action: Read the error and its cause. If the servers are unreachable, no action is needed here.
        tracing::warn!(target: "docent::lock", %client, %path, error = %full_error(self.client(), error), cause, "cannot join the waiting line; retrying");
    }

    pub(super) fn log_rejoined(&self) {
        if self.0.stuck.swap(false, Ordering::Relaxed) {
            // Event: The client acquired its turn in the line again, after it had logged that it could not
            // join the line.
            tracing::info!(target: "docent::lock", client = %self.client().label(), path = %self.full_path(), "rejoined the waiting line");
        }
    }
}

impl Line {
    /// Returns the value of this type that handles of this line share, creating it with `create` if there is
    /// none.
    ///
    /// Handles share a value if their `settings` are equal and their clients have the same timeout and
    /// session. The value is dropped together with the last handle.
    pub fn common<K, T>(&self, settings: K, create: impl FnOnce() -> T) -> Arc<T>
    where
        K: Any + Eq + Hash + Send,
        T: Any + Send + Sync,
    {
        let key = (self.client().key(self.full_path().to_owned()), self.marker(), settings);
        self.client().shared().common.get(key, create)
    }
}

/// Returns true for a transient error.
fn is_transient(error: &Error) -> bool {
    match error.kind() {
        // The client is bound to a session that has ended, which is final.
        ErrorKind::SessionChanged => false,
        // `NoNode` means that the parents were deleted as fast as they were created. `TooManyEphemerals` ends
        // when other nodes of the session are deleted.
        ErrorKind::NoNode | ErrorKind::TooManyEphemerals => true,
        _ => error.is_retryable(),
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "Line", self.path(), self.client()).finish_non_exhaustive()
    }
}
