use super::ElectionBuilder;
use super::run::{ElectionRun, terms};
use crate::Leadership;
use crate::takeover;
use crate::telemetry;
use crate::term::Term;
use bytes::Bytes;
use docent_core::recipe::{Hold, Line, Series, debug_handle};
use docent_core::{Client, Error, Fence};
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::time::Instant;

/// Elects one leader among the candidates at a path, across processes.
///
/// # Expected flow
/// A candidate takes a ticket (an ephemeral node with a number) below the election's path. The lowest number
/// leads; each other candidate waits for the one before it. [`run`](Self::run) does a piece of work in every
/// term of this candidate, and campaigns again after each; [`campaign`](Self::campaign) leads for one term.
/// [`observe`](Self::observe) follows the leaders, also without being a candidate.
///
/// # Guarantees
/// - In the order of transactions at most one leadership is valid, and their fences increase from term to
///   term.
/// - A leader whose client is cut off, paused or starved knows that its leadership is lost before the servers
///   let the next one lead, unless its process was paused; then it knows at its next look, and the fence
///   keeps a resource safe.
/// - Work under [`run`](Self::run) is not polled any more once the leadership is lost, and has been dropped
///   before the next term of the same candidate begins.
/// - A candidate that campaigns is in the line, or on its way to it, or an error says why not. It leaves only
///   when its future is dropped or done.
/// - A leader that leaves wakes the next candidate, and the one behind it, which looks ahead. Without faults
///   a leader leads for as long as it wants, and of those who wait the next alone writes, to keep its lease
///   young.
///
/// # Assumptions
/// The session timeout is at least four ticks of the server, and the clock runs whenever the world does. All
/// candidates use the same [`ElectionLayout`](crate::ElectionLayout).
///
/// # What happens
/// - *Link down:* a leader leads until its lease runs out; a candidate keeps its place.
/// - *Session over:* a leader's term is lost; a candidate takes a new ticket at the end of the line, in the
///   next session.
/// - *Drop or cancel:* the candidate leaves the line and the leader resigns, in the background, whatever had
///   been sent.
///
/// # Caveats
/// Not for exclusion at a resource that cannot check fences and must never see two writers: no election can
/// promise that to a process that is paused. Not for work that is shared out by keys: an election for each
/// key costs a session's node and heartbeat for each.
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
    /// 1 while it leads, for metrics.
    pub(super) gauge: Option<Series>,
    /// The hold of the present term.
    pub(super) leading: Mutex<Weak<Hold>>,
}

impl Election {
    /// The election at `path`, with default settings. Parents are created on demand, as containers, which the
    /// servers delete when they are empty.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Self::builder(client, path).build()
    }

    /// Prepares an election with settings of its own.
    pub fn builder(client: &Client, path: &str) -> ElectionBuilder {
        ElectionBuilder::new(client, path)
    }

    pub(super) fn checked(inner: Inner) -> Result<Self, Error> {
        let election = Self(Arc::new(inner));
        election.check_grace("election")?;
        Ok(election)
    }

    /// The path, as it was given.
    pub fn path(&self) -> &str {
        self.0.line.path()
    }

    /// Stands until elected, however long others lead, and leads for one term.
    ///
    /// When the ticket or its session is gone meanwhile, a new one is taken. An outage of the servers is
    /// waited out: bound the call with `tokio::time::timeout` if it is not to last that long.
    ///
    /// # Errors
    /// `MixedKinds` when a candidate of another layout, or of kazoo's that it was not [told
    /// of](crate::ElectionBuilder::neighbours), stands before it; `NoAuth`, `AuthFailed`, `ShortLease`,
    /// `SequenceExhausted`, `EnsembleRolledBack`, `Closed`; `InvalidInput` when the grace does not fit into
    /// the margin of the lease, or when a takeover delay is set and something else stands in the election's
    /// node; `SessionChanged` with a client that is bound [to one
    /// session](docent_core::Client::in_this_session).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line.
    pub fn campaign(&self) -> impl Future<Output = Result<Leadership, Error>> + Send + use<> {
        let election = self.clone();
        async move { Ok(Leadership::owning(election.term().await?)) }
    }

    /// Campaigns, does `work` while leading, resigns when it is done, and campaigns again, until the work
    /// fails or the returned future is [stopped](ElectionRun::until) or dropped.
    ///
    /// The work is bound to the leadership: it is polled in the future that this returns, never after the
    /// leadership was lost (a [grace](crate::ElectionBuilder::grace) excepted), and dropped then. Tasks it
    /// spawned are not: give them [`Leadership::token`] or await them. The term ends with the work, also if
    /// the work left its [`Leadership`] elsewhere.
    ///
    /// - *The work returns `Ok`:* it resigns and campaigns again, at the end of the line; where the work took
    ///   less than the [term interval](ElectionBuilder::term_interval), one second by default, after the rest
    ///   of that.
    /// - *The work returns `Err`:* it resigns, and that is the end: the error is returned. If the leadership
    ///   had been lost by then, the error is taken for a consequence of that, and it campaigns again.
    /// - *The work panics:* it resigns, and the panic goes on to the caller that awaits this.
    /// - *The leadership is lost:* the work is dropped, and it campaigns again.
    /// - *The client is [shut down](Client::shutdown):* as if it was [stopped](ElectionRun::until) when the
    ///   shutdown has come to the elections, and `Ok` is returned.
    ///
    /// # Errors
    /// The error that the work returns; and errors of [`campaign`](Self::campaign), as `E`.
    ///
    /// # Cancel safety
    /// The future is cancel safe: dropping it drops the work first, and then resigns in the background or
    /// leaves the line.
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
    pub fn run<W, F, E>(&self, work: W) -> ElectionRun<impl Future<Output = Result<(), E>> + use<W, F, E>>
    where
        W: FnMut(Leadership) -> F,
        F: Future<Output = Result<(), E>>,
        E: From<Error>,
    {
        ElectionRun::new(|stop| terms(self.clone(), work, stop))
    }

    /// Begins the numbers of the line anew, which is due when campaigning fails with `SequenceExhausted`:
    /// after 2^31 − 2^20 candidacies. Fences go on increasing. A leader that was lost before is forgotten:
    /// nobody waits for a [takeover delay](ElectionBuilder::takeover_delay) because of it.
    ///
    /// # Errors
    /// `NotEmpty` when somebody stands; `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe: doing it again does no harm.
    pub fn reset(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let line = self.0.line.clone();
        async move {
            takeover::remove_keeper(&line).await?;
            line.reset().await
        }
    }

    pub(super) fn client(&self) -> &Client {
        self.0.line.client()
    }

    /// Label of the client.
    pub(crate) fn label(&self) -> &str {
        self.0.line.client().label()
    }

    pub(crate) fn grace(&self) -> Duration {
        self.0.grace
    }

    /// Waits until another term may begin after one that began at `began`.
    pub(super) async fn rest(&self, began: Instant) {
        let interval = self.0.term_interval;
        if began.elapsed() < interval {
            let jitter = interval.mul_f64(fastrand::f64() / 4.0);
            self.0.line.pause(interval.saturating_add(jitter).saturating_sub(began.elapsed())).await;
        }
    }

    /// Campaigns until a term begins. There is no way out of this but that, an error that only people can
    /// mend, and being dropped.
    pub(crate) async fn term(&self) -> Result<Term, Error> {
        tracing::info!(client = self.label(), path = self.path(), "campaigning");
        let mut told = None;
        loop {
            match Box::pin(self.stand(&mut told)).await {
                // It was first, and lost that before its term began.
                Err(error) if error.is_lost() => {
                    tracing::warn!(client = self.label(), path = self.path(), %error, "campaigning again");
                }
                Err(error) => self.0.line.wait_out(error).await?,
                Ok(term) => return Ok(term),
            }
        }
    }

    /// Stands once. `told` is the lost leader that the log named last.
    async fn stand(&self, told: &mut Option<Fence>) -> Result<Term, Error> {
        self.check_grace("campaign")?;
        let Inner { line, data, takeover_delay, .. } = &*self.0;
        if !takeover_delay.is_zero() {
            takeover::prepare(line).await?;
        }
        let hold = Arc::new(line.acquire(data.clone()).await?);
        // A lease was granted, so its margin is known now.
        self.check_grace("campaign")?;
        if !takeover_delay.is_zero() {
            takeover::begin(line, &hold, *takeover_delay, told).await?;
        }
        tracing::info!(client = self.label(), path = self.path(), fence = %hold.fence(), "leading");
        *self.leading() = Arc::downgrade(&hold);
        if let Some(gauge) = &self.0.gauge {
            hold.show_in(gauge.clone());
        }
        let span = telemetry::term_span(self.label(), self.path(), hold.fence());
        Ok(Term::new(hold, !takeover_delay.is_zero(), span))
    }

    /// The grace must fit into the margin of the lease, as far as that is known.
    fn check_grace(&self, operation: &'static str) -> Result<(), Error> {
        match self.0.line.lease_margin() {
            // A lost leader keeps its node for a margin: its work must have stopped by then (decision 3).
            Some(margin) if self.0.grace > margin => {
                let timeout = self.0.line.client().session_timeout().unwrap_or_default();
                let detail = format!(
                    "grace {:?} must be at most {margin:?}, the margin of the lease of a session of {timeout:?}",
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

// The data of nodes is not printed.
impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "Election", self.path(), self.0.line.client())
            .field("leads", &self.is_leader())
            .finish_non_exhaustive()
    }
}
