use super::Election;
use crate::Leadership;
use crate::term::Term;
use docent_core::recipe::{Stage, stage_reached};
use docent_core::{Error, ErrorKind, Fence, Lost, LostReason, planted};
use futures_util::FutureExt;
use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

/// Campaigns and works, term after term. Made by [`Election::run`]; does nothing until it is awaited.
///
/// # On drop
/// The work is dropped, and the leader resigns, or the candidate leaves the line, in the background.
#[must_use = "nobody campaigns unless this is awaited"]
pub struct ElectionRun<F> {
    terms: Pin<Box<F>>,
    stop: CancellationToken,
}

impl<F: Future> ElectionRun<F> {
    pub(crate) fn new(terms: impl FnOnce(CancellationToken) -> F) -> Self {
        let stop = CancellationToken::new();
        Self { terms: Box::pin(terms(stop.clone())), stop }
    }

    /// Runs until `shutdown` is done. Then a candidate leaves the line in the background; a leader's work is
    /// dropped, after [`Leadership::token`] was cancelled and the [grace](crate::ElectionBuilder::grace) has
    /// passed, if there is one, and it resigns: once this returns, its node is gone, or is being deleted in
    /// the background when no server could be reached within the operation timeout.
    ///
    /// # Errors
    /// As [`Election::run`].
    ///
    /// # Cancel safety
    /// As [`Election::run`].
    pub async fn until(mut self, shutdown: impl Future) -> F::Output {
        tokio::select! {
            biased;
            _ = shutdown => self.stop.cancel(),
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

/// Term after term. The only ways out are `stop`, the client's shutdown, and errors, which are returned.
pub(crate) async fn terms<W, F, E>(election: Election, mut work: W, stop: CancellationToken) -> Result<(), E>
where
    W: FnMut(Leadership) -> F,
    F: Future<Output = Result<(), E>>,
    E: From<Error>,
{
    if stage_reached(election.client(), Stage::Elections).now_or_never().is_some() {
        return Err(Error::closed("campaign", election.path()).into());
    }
    let mut has_led = false;
    loop {
        let term = tokio::select! {
            biased;
            () = stopped(&election, &stop) => {
                if !has_led {
                    tracing::info!(client = election.label(), path = election.path(), "told to stop, leaving the line");
                }
                return Ok(());
            }
            term = election.term() => match term {
                Ok(term) => term,
                Err(error) => return not_elected(error, stopped(&election, &stop).now_or_never().is_some()),
            },
        };
        has_led = true;
        let (fence, began) = (term.share().hold.fence(), Instant::now());
        let span = term.share().span().clone();
        let done = lead(&election, &term, &mut work, &stop).instrument(span.clone()).await;
        // From here on the work is dropped.
        match (done, term.share().hold.check()) {
            (_, Err(lost)) if lost.reason != LostReason::Released => {
                if planted!(OutAfterSessionEnd) && lost.reason == LostReason::SessionExpired {
                    stop.cancelled().await;
                    return Ok(());
                }
                span.record("docent.end", tracing::field::display(lost.reason));
                tracing::warn!(client = election.label(), path = election.path(), %fence, %lost, "the term is over, campaigning again");
            }
            (done, _) => {
                let told = stopped(&election, &stop).now_or_never().is_some();
                span.in_scope(|| tell_end(&election, fence, told, done.is_err()));
                let resigned = term.resign().await;
                done?;
                // It may have been told to stop while it resigned.
                may_go_on(resigned, stopped(&election, &stop).now_or_never().is_some())?;
                tokio::select! {
                    () = stopped(&election, &stop) => {}
                    () = election.rest(began) => {}
                }
            }
        }
    }
}

/// Result of a run whose campaign ended with `error`. The end of the client is none of one that was told to
/// stop: the stage of its shutdown may come between the look for that and the campaign's own.
fn not_elected<E: From<Error>>(error: Error, told: bool) -> Result<(), E> {
    match error.kind() {
        ErrorKind::Closed if told => Ok(()),
        _ => Err(error.into()),
    }
}

/// Resolves when the run is stopped: by its own `stop`, or by the shutdown of its client.
async fn stopped(election: &Election, stop: &CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = stage_reached(election.client(), Stage::Elections) => {}
    }
}

/// Does the work for as long as it may be done. Its result counts only if the leadership was not lost before.
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
        // It does not begin in a term that is lost by then, nor in its grace.
        let mut work = pin!(async {
            match share.hold.check() {
                Ok(()) => work(Leadership::within(term)).await,
                Err(_) => Ok(()),
            }
        });
        match share.hold.run_with_grace(election.grace(), work.as_mut()).await {
            Ok(done) => done,
            // It resigned, and goes on without the leadership until it is done or stopped.
            Err(Lost { reason: LostReason::Released }) => work.await,
            Err(_) if planted!(WorkGoesOnAfterLoss) => work.await,
            Err(_) => Ok(()),
        }
    };
    let mut working = pin!(working);
    let until_stopped = async {
        match planted!(TermEndsByItself) {
            true => tokio::time::sleep(std::time::Duration::from_secs(5)).await,
            false => stopped(election, stop).await,
        }
    };
    tokio::select! {
        biased;
        () = until_stopped => {}
        done = &mut working => return done,
    }
    share.told.cancel();
    tokio::time::timeout(election.grace(), working).await.unwrap_or(Ok(()))
}

/// Tells in the log how a term ended that was not lost.
fn tell_end(election: &Election, fence: Fence, stopped: bool, failed: bool) {
    let (client, path, span) = (election.label(), election.path(), Span::current());
    match (stopped, failed) {
        (true, _) => {
            span.record("docent.end", "stopped");
            tracing::info!(client, path, %fence, "told to stop, resigning");
        }
        (false, true) => {
            span.record("docent.end", "failed");
            tracing::warn!(client, path, %fence, "the work failed, resigning");
        }
        (false, false) => {
            span.record("docent.end", "done");
            tracing::info!(client, path, %fence, "the work is done, resigning");
        }
    }
}

/// Says whether the candidate may campaign again after it `resigned`: a node that cannot be deleted would
/// stand before its next ticket for ever. A node whose deletion takes longer is deleted in the background,
/// and so is one whose leadership was given up or lost before.
///
/// An ended session counts as well, unlike in `Line::wait_out`: its node went with it, and the campaign after
/// this says so itself where the client is bound to that session.
///
/// Of one that was told to stop nothing is asked: what is left goes with the session.
fn may_go_on(resigned: Result<(), Error>, told: bool) -> Result<(), Error> {
    match resigned {
        Err(error) if told && error.kind() == ErrorKind::Closed => Ok(()),
        Err(error) if !error.is_lost() && !error.is_retryable() => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_campaign_that_the_shutdown_ended_is_no_error_of_the_run() {
        let closed = || Error::closed("campaign", "/election");
        assert!(not_elected::<Error>(closed(), true).is_ok());
        assert!(not_elected::<Error>(closed(), false).is_err());
        assert!(not_elected::<Error>(Error::invalid_input("campaign", "a rule"), true).is_err());
    }
}
