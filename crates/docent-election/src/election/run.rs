use super::Election;
use crate::Leadership;
use crate::term::Term;
use docent_core::recipe::{Stage, stage_reached};
use docent_core::{Error, ErrorKind, Fence, Lost, LostReason, Released, planted};
use futures_util::FutureExt;
use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

/// Future that campaigns and works, term after term. Created by [`Election::run`]; does nothing until it is
/// awaited.
///
/// # On drop
/// The work is dropped. Then the leader resigns, or the candidate leaves the line, in the background.
#[must_use = "does nothing unless awaited"]
pub struct ElectionRun<F> {
    terms: Pin<Box<F>>,
    control: Arc<RunControl>,
}

/// Settings of an [`ElectionRun`], which its future reads.
#[derive(Default)]
pub(crate) struct RunControl {
    stop: CancellationToken,
    retries_failures: AtomicBool,
}

impl<F: Future> ElectionRun<F> {
    pub(crate) fn new(terms: impl FnOnce(Arc<RunControl>) -> F) -> Self {
        let control = Arc::new(RunControl::default());
        Self { terms: Box::pin(terms(Arc::clone(&control))), control }
    }

    /// Continues after a failure of the work: if the work returns an error, the error is logged, and the
    /// candidate resigns, waits, and campaigns again. Other candidates can lead meanwhile.
    ///
    /// The wait begins with 1 s and doubles with each failure, up to 30 s. It begins with 1 s again after
    /// work that lasted at least 30 s or returned `Ok`. Work that must not be repeated for certain errors
    /// handles them before it returns.
    ///
    /// The errors of the election itself still end the run, such as `NoAuth` and `Closed`.
    pub fn retry_failures(self) -> Self {
        self.control.retries_failures.store(true, Ordering::Relaxed);
        self
    }

    /// Runs until `shutdown` completes. A candidate then leaves the line in the background.
    ///
    /// A leader cancels [`Leadership::token`], waits for the [grace](crate::ElectionBuilder::grace) if there
    /// is one, drops the work, and resigns. When this method returns, the leader's node has been deleted; if
    /// no server could be reached within the operation timeout, the node is being deleted in the background.
    ///
    /// # Errors
    /// As [`Election::run`].
    ///
    /// # Cancel safety
    /// This method is cancel safe: dropping the future drops the work first, and then resigns or leaves the
    /// line in the background.
    pub async fn until(mut self, shutdown: impl Future) -> F::Output {
        tokio::select! {
            biased;
            _ = shutdown => self.control.stop.cancel(),
            done = &mut self.terms => return done,
        }
        self.terms.await
    }
}

impl<F: Future> Future for ElectionRun<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.terms.as_mut().poll(cx)
    }
}

impl<F> fmt::Debug for ElectionRun<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElectionRun").finish_non_exhaustive()
    }
}

/// Runs term after term. Returns only on `stop`, on the client's shutdown, or with an error.
pub(crate) async fn terms<W, F, E>(election: Election, mut work: W, control: Arc<RunControl>) -> Result<(), E>
where
    W: FnMut(Leadership) -> F,
    F: Future<Output = Result<(), E>>,
    E: From<Error> + fmt::Display,
{
    let stop = &control.stop;
    if stage_reached(election.client(), Stage::Elections).now_or_never().is_some() {
        return Err(Error::closed("campaign", election.path()).into());
    }
    let (mut has_led, mut failures) = (false, Failures::default());
    loop {
        let term = tokio::select! {
            biased;
            () = stopped(&election, stop) => {
                if !has_led {
                    // Event: The run was asked to stop, or the client is shutting down, before this candidate
                    // ever led. It leaves the election.
                    tracing::info!(target: "docent::election", client = %election.label(), path = %election.full_path(), "asked to stop; leaving the election");
                }
                return Ok(());
            }
            term = election.term() => match term {
                Ok(term) => term,
                Err(error) => return not_elected(error, stopped(&election, stop).now_or_never().is_some()),
            },
        };
        has_led = true;
        let (fence, began) = (term.share().hold.fence(), Instant::now());
        let span = term.share().span().clone();
        let done = lead(&election, &term, &mut work, stop).instrument(span.clone()).await;
        // The work has been dropped by now.
        match (done, term.share().hold.check()) {
            (_, Err(lost)) if lost.reason != LostReason::Released => {
                if planted!(OutAfterSessionEnd) && lost.reason == LostReason::SessionExpired {
                    stop.cancelled().await;
                    return Ok(());
                }
                span.record("docent.end", tracing::field::display(lost.reason));
                // Event: The leadership was lost; the field `lost` has the reason, as has the warning about
                // the lost guard. The work was stopped, and the candidate campaigns again at the end of the
                // line.
                tracing::info!(target: "docent::election", client = %election.label(), path = %election.full_path(), %fence, %lost, "leadership lost; campaigning again");
            }
            (done, _) => {
                let stop_requested = stopped(&election, stop).now_or_never().is_some();
                span.in_scope(|| log_end(&election, fence, stop_requested, done.as_ref().err()));
                let worked = began.elapsed();
                let resigned = term.resign().await;
                let pause = match done {
                    Ok(()) => failures.reset(),
                    Err(_) if control.retries_failures.load(Ordering::Relaxed) => {
                        failures.pause_after(worked)
                    }
                    Err(error) => return Err(error),
                };
                // The run may have been asked to stop while it resigned.
                check_resignation(resigned, stopped(&election, stop).now_or_never().is_some())?;
                let pauses = async { tokio::join!(election.wait_term_interval(began), sleep(pause)) };
                tokio::select! {
                    () = stopped(&election, stop) => {}
                    _ = pauses => {}
                }
            }
        }
    }
}

/// Pauses after failures of the work.
#[derive(Default)]
struct Failures {
    last_pause: Option<Duration>,
}

impl Failures {
    const SHORTEST: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(30);

    /// Forgets earlier failures. Returns no pause.
    fn reset(&mut self) -> Duration {
        self.last_pause = None;
        Duration::ZERO
    }

    /// Returns the pause after work that failed after this time.
    fn pause_after(&mut self, worked: Duration) -> Duration {
        let last = self.last_pause.filter(|_| worked < Self::LONGEST);
        let pause = last.map_or(Self::SHORTEST, |last| (last * 2).min(Self::LONGEST));
        self.last_pause = Some(pause);
        pause
    }
}

/// Returns the result of a run whose campaign ended with `error`. `Closed` is not an error if the run was
/// asked to stop: the client's shutdown may reach the elections between the check for a stop and the
/// campaign's own check.
fn not_elected<E: From<Error>>(error: Error, stop_requested: bool) -> Result<(), E> {
    match error.kind() {
        ErrorKind::Closed if stop_requested => Ok(()),
        _ => Err(error.into()),
    }
}

/// Resolves when the run is stopped, by its own `stop` or by the shutdown of its client.
async fn stopped(election: &Election, stop: &CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = stage_reached(election.client(), Stage::Elections) => {}
    }
}

/// Does the work while the leadership lasts. The result of the work counts only if the leadership was not
/// lost before.
async fn lead<W, F, E>(
    election: &Election,
    term: &Term,
    work: &mut W,
    stop: &CancellationToken,
) -> Result<(), E>
where
    W: FnMut(Leadership) -> F,
    F: Future<Output = Result<(), E>>,
{
    let share = term.share();
    let working = async {
        // The work does not begin if the term is already lost, not even during the grace.
        let mut work = pin!(async {
            match share.hold.check() {
                Ok(()) => work(Leadership::within(term)).await,
                Err(_) => Ok(()),
            }
        });
        match share.hold.run_with_grace(election.grace(), work.as_mut()).await {
            Ok(done) => done,
            // The work resigned. It continues without the leadership until it completes or is stopped.
            Err(Lost { reason: LostReason::Released }) => work.await,
            Err(_) if planted!(WorkGoesOnAfterLoss) => work.await,
            Err(_) => Ok(()),
        }
    };
    let mut working = pin!(working);
    let until_stopped = async {
        match planted!(TermEndsByItself) {
            true => sleep(Duration::from_secs(5)).await,
            false => stopped(election, stop).await,
        }
    };
    tokio::select! {
        biased;
        () = until_stopped => {}
        done = &mut working => return done,
    }
    share.stop_token.cancel();
    tokio::time::timeout(election.grace(), working).await.unwrap_or(Ok(()))
}

/// Logs how a term ended that was not lost.
fn log_end(election: &Election, fence: Fence, stopped: bool, failure: Option<&impl fmt::Display>) {
    let (client, path, span) = (election.label(), election.full_path(), Span::current());
    match (stopped, failure) {
        (true, failure) => {
            span.record("docent.end", "stopped");
            if let Some(error) = failure {
                // Event: The leader's work was asked to stop and returned an error. With `retry_failures` the
                // run ends with `Ok` all the same; otherwise the error is returned.
                // Action: Read the error, which is that of the application.
                tracing::warn!(target: "docent::election", %client, %path, %fence, %error, "the leader's work failed while it stopped");
            }
            // Event: The run was asked to stop, or the client is shutting down. The leader gives up its
            // leadership.
            tracing::info!(target: "docent::election", %client, %path, %fence, "asked to stop; resigning");
        }
        (false, Some(error)) => {
            span.record("docent.end", "failed");
            // Event: The leader's work returned an error. The leader resigns. With `retry_failures` it
            // campaigns again after a pause; otherwise the error is returned to the caller of the run.
            // Action: Read the error, which is that of the application.
            tracing::warn!(target: "docent::election", %client, %path, %fence, %error, "the leader's work failed; resigning");
        }
        (false, None) => {
            span.record("docent.end", "done");
            // Event: The leader's work completed. The leader resigns and campaigns again after the term
            // interval.
            tracing::info!(target: "docent::election", %client, %path, %fence, "the leader's work completed; resigning");
        }
    }
}

/// Returns an error if the candidate must not campaign again after its resignation ended with `resigned`. A
/// node that cannot be deleted would stay ahead of the candidate's next ticket forever. A node whose deletion
/// takes longer is deleted in the background, as is a node whose leadership was already given up or lost.
///
/// Unlike in `Line::wait_out`, an ended session is accepted: the node was deleted with the session. If the
/// client is bound to that session, the next campaign reports the error.
///
/// `Closed` is accepted if the run was asked to stop: the node is deleted with the session.
fn check_resignation(resigned: Result<Released, Error>, stop_requested: bool) -> Result<(), Error> {
    match resigned {
        Err(error) if stop_requested && error.kind() == ErrorKind::Closed => Ok(()),
        Err(error) if !error.is_lost() && !error.is_retryable() => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_with_failures_and_start_again_after_good_work() {
        let (mut failures, short) = (Failures::default(), Duration::from_secs(1));
        let seconds: Vec<_> = (0..7).map(|_| failures.pause_after(short).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(failures.pause_after(Failures::LONGEST), Failures::SHORTEST);
        assert_eq!(failures.pause_after(short).as_secs(), 2);
        assert_eq!(failures.reset(), Duration::ZERO);
        assert_eq!(failures.pause_after(short), Failures::SHORTEST);
    }

    #[test]
    fn a_campaign_that_the_shutdown_ended_is_no_error_of_the_run() {
        let closed = || Error::closed("campaign", "/election");
        assert!(not_elected::<Error>(closed(), true).is_ok());
        assert!(not_elected::<Error>(closed(), false).is_err());
        assert!(not_elected::<Error>(Error::invalid_input("campaign", "a rule"), true).is_err());
    }
}
