use super::candidate::Candidate;
use super::ensemble::Ensemble;
use crate::session::LinkError;
use crate::session::link::transport::Io;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, sleep_until, timeout};

/// Longest time that one attempt is ahead of the next.
const LONGEST_HEAD_START: Duration = Duration::from_millis(250);

/// Attempts to connect that go on side by side: each has a head start before the next begins, and the first
/// link that is made wins (the idea of RFC 8305). All others are dropped before anything was sent over them,
/// so that a session is never asked for on two links.
pub(super) struct Race<'a> {
    ensemble: &'a Ensemble,
    /// Time limit of one attempt.
    limit: Duration,
    attempts: FuturesUnordered<BoxFuture<'static, Attempt>>,
    running: Vec<Candidate>,
    /// Time at which the next attempt may begin although others go on.
    next_at: Instant,
}

/// Result of an attempt, with its candidate.
type Attempt = (Candidate, Result<io::Result<Box<dyn Io>>, Elapsed>);

impl<'a> Race<'a> {
    pub(super) fn new(ensemble: &'a Ensemble, limit: Duration) -> Self {
        let (attempts, running) = (FuturesUnordered::new(), Vec::new());
        Self { ensemble, limit, attempts, running, next_at: Instant::now() }
    }

    /// The first link to one of `candidates`, which are taken from their front; `None` when no candidate gave
    /// a link. Candidates that may still give one are put back.
    pub(super) async fn run(
        mut self,
        candidates: &mut VecDeque<Candidate>,
    ) -> Option<(Candidate, Box<dyn Io>)> {
        loop {
            let next = candidates.front().map(|candidate| candidate.left_at.is_some());
            // A candidate with unanswered writes begins only when no other attempt is left: it must not win
            // against them.
            let may_begin = next == Some(false);
            if (self.attempts.is_empty() || may_begin && Instant::now() >= self.next_at)
                && let Some(candidate) = candidates.pop_front()
            {
                self.begin(candidate);
                continue;
            }
            tokio::select! {
                biased;
                attempt = self.attempts.next() => {
                    let (candidate, made) = attempt?;
                    self.running.retain(|running| running.address != candidate.address);
                    if let Some(io) = self.made(&candidate, made) {
                        self.put_back(candidates);
                        return Some((candidate, io));
                    }
                    self.next_at = Instant::now();
                }
                () = sleep_until(self.next_at), if may_begin => {}
            }
        }
    }

    fn begin(&mut self, candidate: Candidate) {
        self.ensemble.last_error.wait_for(LinkError::Connecting { server: candidate.to_string() });
        self.next_at = Instant::now() + (self.limit / 4).min(LONGEST_HEAD_START);
        self.running.push(candidate.clone());
        let (transport, limit) = (Arc::clone(&self.ensemble.transport), self.limit);
        let attempt = async move {
            let made = timeout(limit, transport.dial(&candidate.server, candidate.address)).await;
            (candidate, made)
        };
        self.attempts.push(attempt.boxed());
    }

    /// The link that was made, if it was.
    fn made(
        &self,
        candidate: &Candidate,
        made: Result<io::Result<Box<dyn Io>>, Elapsed>,
    ) -> Option<Box<dyn Io>> {
        let server = candidate.to_string();
        let error = match made {
            Ok(Ok(io)) => {
                self.ensemble.last_error.wait_for(LinkError::Greeting { server });
                return Some(io);
            }
            Ok(Err(error)) => LinkError::Dial { server, source: Arc::new(error) },
            Err(_) => LinkError::DialTimeout { server, seconds: self.limit.as_secs_f64() },
        };
        tracing::debug!(%error, "no link");
        // At an address that the name had before: the error of the name says more than one from there.
        if !candidate.known_only {
            self.ensemble.last_error.set(error);
        }
        None
    }

    /// Attempts that had no time to come to an end are made again, after those that were not made yet.
    fn put_back(&mut self, candidates: &mut VecDeque<Candidate>) {
        let last =
            candidates.iter().position(|candidate| candidate.left_at.is_some()).unwrap_or(candidates.len());
        for running in self.running.drain(..) {
            candidates.insert(last, running);
        }
    }
}
