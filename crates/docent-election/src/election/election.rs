use super::run::{ElectionRun, terms};
use super::{ElectionBuilder, WorkResult};
use crate::Leadership;
use crate::takeover;
use crate::telemetry;
use crate::term::Term;
use crate::waiting::explained;
use bytes::Bytes;
use docent_core::recipe::{Hold, InOperation, Line, Series, debug_handle, full_error};
use docent_core::{Client, Error, Fence};
use futures_util::FutureExt;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::time::Instant;

/// Elects one leader among the candidates at a path, across processes.
///
/// # Expected flow
///
/// A candidate takes a ticket (an ephemeral sequential node) below the election's path. The candidate with
/// the lowest number leads; every other candidate waits for its predecessor. [`run`](Self::run) does a piece
/// of work in each term of this candidate and campaigns again after each term. [`campaign`](Self::campaign)
/// leads for one term. [`observe`](Self::observe) follows the leaders and does not require being a candidate.
///
/// # Guarantees
/// - At most one leadership is valid in the order of transactions, and fences increase from term to term.
/// - A leader whose client is disconnected or starved learns that its leadership is lost before the servers
///   let the next candidate lead. A paused process learns of the loss at its first check after the pause;
///   until then only the fence protects the resource.
/// - Work under [`run`](Self::run) is never polled after the leadership is lost, except during a
///   [grace](crate::ElectionBuilder::grace). It is dropped before the next term of the same candidate begins.
/// - A candidate that campaigns is in the line or about to join it, or an error reports why not. It leaves
///   the line only when its future completes or is dropped.
/// - A leader that resigns wakes two candidates: the next leader, and the candidate behind the next leader,
///   which reads the line again. Without faults, a leader leads for as long as it wants. Of the waiting
///   candidates only the next one writes, to keep its lease fresh.
///
/// # Assumptions
/// The session timeout is at least four server ticks, and the clock does not stop while the machine is
/// suspended. All candidates use the same [`ElectionLayout`](crate::ElectionLayout).
///
/// # What happens
/// - *Connection lost:* a leader leads until its lease runs out; a candidate keeps its place.
/// - *Session expired:* a leader's term is lost; a candidate takes a new ticket at the end of the line, in
///   the next session.
/// - *Drop or cancel:* the candidate leaves the line, or the leader resigns, in the background, even if
///   requests are in flight.
///
/// # Caveats
/// An election is not suitable for mutual exclusion at a resource that cannot check fences and must never
/// have two writers: no election can guarantee this if a process may be paused. An election is also not
/// suitable for distributing work by key: each key costs one node and one check in the heartbeat.
///
/// Cheap to clone; clones are the same candidate.
///
/// Source: "Leader Election" in ZooKeeper's recipes, with the changes described for
/// [`Ticket::wait`](docent_core::recipe::Ticket::wait).
#[derive(Clone)]
pub struct Election(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) line: Line,
    pub(super) data: Option<Bytes>,
    pub(super) takeover_delay: Duration,
    pub(super) grace: Duration,
    pub(super) term_interval: Duration,
    /// Gauge that is 1 while this candidate leads.
    pub(super) gauge: Option<Series>,
    /// Hold of the current term.
    pub(super) leading: Mutex<Weak<Hold>>,
}

impl Election {
    /// Creates a handle for the election at `path`, with default settings. Missing parents are created on
    /// demand as containers, which the servers delete when they are empty.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Self::builder(client, path).build()
    }

    /// Returns a builder for an election with custom settings.
    pub fn builder(client: &Client, path: &str) -> ElectionBuilder {
        ElectionBuilder::new(client, path)
    }

    pub(super) fn checked(inner: Inner) -> Result<Self, Error> {
        let election = Self(Arc::new(inner));
        election.check_grace("election")?;
        Ok(election)
    }

    /// Returns the path that was passed to the constructor.
    pub fn path(&self) -> &str {
        self.0.line.path()
    }

    /// Campaigns until this candidate is elected, waiting as long as necessary, and leads for one term.
    ///
    /// If the ticket is deleted or its session expires while waiting, a new ticket is taken. An outage of the
    /// servers is waited out: use `tokio::time::timeout` to limit the wait.
    ///
    /// # Errors
    /// `MixedKinds` if a candidate of another layout, or a kazoo candidate that was not configured as a
    /// [neighbour](crate::ElectionBuilder::neighbours), is ahead; `NoAuth`, `AuthFailed`, `ShortLease`,
    /// `SequenceExhausted`, `EnsembleRolledBack`, `Closed`; `InvalidInput` if the grace exceeds the margin of
    /// the lease, or if a takeover delay is set and the election's node holds other data; `SessionChanged` if
    /// the client is bound [to one session](docent_core::Client::in_this_session).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses your place in the queue.
    pub fn campaign(&self) -> impl Future<Output = Result<Leadership, Error>> + Send + use<> {
        let election = self.clone();
        async move { Ok(Leadership::owning(election.term().await?)) }
    }

    /// Campaigns, does `work` while leading, resigns when the work completes, and campaigns again. This
    /// continues until the work fails or the returned future is [stopped](ElectionRun::until) or dropped.
    ///
    /// The work returns a `Result`, `()`, or nothing because it never ends; see [`WorkResult`].
    ///
    /// The work is bound to the leadership. It is polled inside the returned future, never after the
    /// leadership is lost (except during a [grace](crate::ElectionBuilder::grace)), and is dropped when the
    /// leadership is lost. Tasks that the work spawned are not bound: pass them [`Leadership::token`] or
    /// await them. The term ends with the work, even if the work moved its [`Leadership`] elsewhere.
    ///
    /// - *The work returns `Ok` or `()`:* the candidate resigns and campaigns again at the end of the line.
    ///   If the work took less than the [term interval](ElectionBuilder::term_interval), one second by
    ///   default, the candidate first waits for the rest of the interval.
    /// - *The work returns `Err`:* the candidate resigns and the error is returned, or logged and the work
    ///   repeated with [`retry_failures`](ElectionRun::retry_failures). An operation of the work may fail
    ///   with `Timeout` while this candidate still leads, because each operation has its own deadline. If the
    ///   leadership had already been lost, the error is considered a consequence of the loss, and the
    ///   candidate campaigns again.
    /// - *The work panics:* the candidate resigns, and the panic propagates to the caller that awaits this
    ///   future.
    /// - *The leadership is lost:* the work is dropped, and the candidate campaigns again.
    /// - *The client is [shut down](Client::shutdown):* the run is [stopped](ElectionRun::until) in the
    ///   shutdown's stage for elections, and `Ok` is returned.
    ///
    /// # Errors
    /// The error that the work returns, or an error of [`campaign`](Self::campaign), converted to the work's
    /// error type.
    ///
    /// # Cancel safety
    /// This method is cancel safe: dropping the future drops the work first, and then resigns or leaves the
    /// line in the background.
    ///
    /// # Examples
    /// ```no_run
    /// # use docent_core::{Client, Error};
    /// # use docent_election::Election;
    /// # async fn schedule(_fence: docent_core::Fence) -> Result<(), Error> { Ok(()) }
    /// # async fn example(
    /// #     client: Client,
    /// #     shutdown: tokio_util::sync::CancellationToken,
    /// # ) -> Result<(), Error> {
    /// let election = Election::builder(&client, "/election/scheduler").id("host-7").build()?;
    /// election
    ///     .run(|leadership| async move { schedule(leadership.fence()).await })
    ///     .until(shutdown.cancelled())
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn run<W, F>(
        &self,
        mut work: W,
    ) -> ElectionRun<impl Future<Output = Result<(), <F::Output as WorkResult>::Error>> + use<W, F>>
    where
        W: FnMut(Leadership) -> F,
        F: Future<Output: WorkResult>,
    {
        let work = move |leadership| work(leadership).map(WorkResult::into_result);
        ElectionRun::new(|control| terms(self.clone(), work, control))
    }

    /// Resets the sequence numbers of the line. This is necessary when campaigning fails with
    /// `SequenceExhausted`, after 2^31 − 2^20 candidacies. Fences continue to increase. The record of a lost
    /// leader is removed, so no candidate waits for a [takeover delay](ElectionBuilder::takeover_delay)
    /// because of it.
    ///
    /// # Errors
    /// `NotEmpty` if there is a candidate; `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe. The reset can be repeated without harm.
    pub fn reset(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let line = self.0.line.clone();
        async move {
            takeover::remove_keeper(&line).await.in_operation("reset")?;
            line.reset().await.in_operation("reset")
        }
    }

    pub(super) fn client(&self) -> &Client {
        self.0.line.client()
    }

    /// Returns the label of the client.
    pub(crate) fn label(&self) -> &str {
        self.0.line.client().label()
    }

    /// The path as the servers know it, with chroot and namespace.
    pub(super) fn full_path(&self) -> &str {
        self.0.line.full_path()
    }

    pub(crate) fn grace(&self) -> Duration {
        self.0.grace
    }

    /// Waits until the next term may begin after a term that began at `began`.
    pub(super) async fn wait_term_interval(&self, began: Instant) {
        let interval = self.0.term_interval;
        if began.elapsed() < interval {
            let jitter = interval.mul_f64(fastrand::f64() / 4.0);
            self.0.line.pause(interval.saturating_add(jitter).saturating_sub(began.elapsed())).await;
        }
    }

    /// Campaigns until a term begins. Returns otherwise only with an error that an operator has to fix.
    pub(crate) async fn term(&self) -> Result<Term, Error> {
        // Event: The candidate joins the election and waits until it is elected.
        tracing::info!(target: "docent::election", client = %self.label(), path = %self.full_path(), "campaigning");
        let mut logged = None;
        loop {
            match Box::pin(self.campaign_once(&mut logged)).await {
                // The candidate was first in line, and lost its place before its term began.
                Err(error) if error.is_lost() => {
                    // Event: The candidate was first in line, but lost its lease or its session before its
                    // term began. It takes a new place at the end of the line.
                    // Action: Check the connection of this client to the servers if the event repeats.
                    tracing::warn!(target: "docent::election", client = %self.label(), path = %self.full_path(), error = %full_error(self.client(), &error), "lost the place in line before the term began; campaigning again");
                }
                Err(error) => self.0.line.wait_out(error).await?,
                Ok(term) => return Ok(term),
            }
        }
    }

    /// Campaigns once. The argument `logged` is the fence of the lost leader that was logged last.
    async fn campaign_once(&self, logged: &mut Option<Fence>) -> Result<Term, Error> {
        self.check_grace("campaign")?;
        let Inner { line, data, takeover_delay, .. } = &*self.0;
        if !takeover_delay.is_zero() {
            takeover::prepare(line).await?;
        }
        let hold = Arc::new(explained(line, line.acquire(data.clone())).await?);
        // A lease has been granted, so its margin is now known.
        self.check_grace("campaign")?;
        if !takeover_delay.is_zero() {
            takeover::begin(line, &hold, *takeover_delay, logged).await?;
        }
        // Event: The candidate was elected, and its term begins. The fence identifies the term.
        tracing::info!(target: "docent::election", client = %self.label(), path = %self.full_path(), fence = %hold.fence(), "leading");
        *self.leading() = Arc::downgrade(&hold);
        if let Some(gauge) = &self.0.gauge {
            hold.show_in(gauge.clone());
        }
        let span = telemetry::term_span(self.label(), self.path(), hold.fence());
        Ok(Term::new(hold, !takeover_delay.is_zero(), span))
    }

    /// Checks that the grace does not exceed the margin of the lease, if the margin is known.
    fn check_grace(&self, operation: &'static str) -> Result<(), Error> {
        match self.0.line.lease_margin() {
            // A lost leader keeps its node for the length of the margin, so its work must stop within that
            // time (decision 3).
            Some(margin) if self.0.grace > margin => {
                let timeout = self.0.line.client().session_timeout().unwrap_or_default();
                let detail = format!(
                    "grace {:?} must be at most {margin:?}, the lease margin for a session timeout of {timeout:?}",
                    self.0.grace
                );
                Err(Error::invalid_input(operation, detail))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn leading(&self) -> MutexGuard<'_, Weak<Hold>> {
        self.0.leading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// Does not print the data, which may be confidential.
impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "Election", self.path(), self.0.line.client())
            .field("leads", &self.is_leader())
            .finish_non_exhaustive()
    }
}
