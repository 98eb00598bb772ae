use super::ensemble::{Candidate, Ensemble};
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

/// Maximum head start of one attempt before the next begins.
const LONGEST_HEAD_START: Duration = Duration::from_millis(250);

/// Concurrent attempts to connect. Each attempt has a head start before the next begins, and the first
/// established link wins (the idea of RFC 8305). All other attempts are dropped before anything is sent over
/// them, so a session is never requested on two links.
pub(super) struct Race<'a> {
    ensemble: &'a Ensemble,
    /// Time limit of one attempt.
    limit: Duration,
    attempts: FuturesUnordered<BoxFuture<'static, Attempt>>,
    running: Vec<Candidate>,
    /// Time at which the next attempt may begin although others are still running.
    next_at: Instant,
}

/// Result of an attempt, with its candidate.
type Attempt = (Candidate, Result<io::Result<Box<dyn Io>>, Elapsed>);

impl<'a> Race<'a> {
    pub(super) fn new(ensemble: &'a Ensemble, limit: Duration) -> Self {
        let (attempts, running) = (FuturesUnordered::new(), Vec::new());
        Self { ensemble, limit, attempts, running, next_at: Instant::now() }
    }

    /// Returns the first link to one of `candidates`, taking candidates from the front. Returns `None` if no
    /// candidate gave a link. Candidates that may still succeed are put back.
    pub(super) async fn run(
        mut self,
        candidates: &mut VecDeque<Candidate>,
    ) -> Option<(Candidate, Box<dyn Io>)> {
        loop {
            let next = candidates.front().map(|candidate| candidate.abandoned_at.is_some());
            // A candidate with unanswered writes begins only when no other attempt is running, because it
            // must not win against the others.
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
                    let (candidate, result) = attempt?;
                    self.running.retain(|running| running.address != candidate.address);
                    if let Some(io) = self.established(&candidate, result) {
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
        let connecting = LinkError::Connecting { server: candidate.to_string() };
        self.ensemble.link_status.waits_for(Some(&candidate.server), connecting);
        self.next_at = Instant::now() + (self.limit / 4).min(LONGEST_HEAD_START);
        self.running.push(candidate.clone());
        let (transport, limit) = (Arc::clone(&self.ensemble.transport), self.limit);
        let attempt = async move {
            let result = timeout(limit, transport.dial(&candidate.server, candidate.address)).await;
            (candidate, result)
        };
        self.attempts.push(attempt.boxed());
    }

    /// Returns the established link if the attempt succeeded.
    fn established(
        &self,
        candidate: &Candidate,
        result: Result<io::Result<Box<dyn Io>>, Elapsed>,
    ) -> Option<Box<dyn Io>> {
        let server = candidate.to_string();
        let error = match result {
            Ok(Ok(io)) => {
                self.ensemble.link_status.waits_for(Some(&candidate.server), LinkError::Greeting { server });
                return Some(io);
            }
            Ok(Err(error)) => LinkError::Dial { server, source: Arc::new(error) },
            Err(_) => LinkError::DialTimeout { server, seconds: self.limit.as_secs_f64() },
        };
        // Event: An attempt to connect to one address of a server failed. The client tries the other
        // addresses, then starts another round.
        tracing::debug!(target: "docent::session", client = %self.ensemble.link_status.client(), %error, "connection attempt failed");
        // An address from an earlier lookup: the error of the lookup is more informative than an error from
        // that address.
        if !candidate.known_only {
            self.ensemble.link_status.failed(Some(&candidate.server), error);
        }
        None
    }

    /// Puts back the candidates whose attempts had no time to finish, behind those that were not tried yet.
    fn put_back(&mut self, candidates: &mut VecDeque<Candidate>) {
        let last = candidates
            .iter()
            .position(|candidate| candidate.abandoned_at.is_some())
            .unwrap_or(candidates.len());
        for running in self.running.drain(..) {
            candidates.insert(last, running);
        }
    }
}
