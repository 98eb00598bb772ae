//! Finds a server to connect to: the list of servers, the order in which they are dialled, and the reason why
//! there is no link yet.

mod ensemble;
mod link_status;
mod race;

pub(crate) use ensemble::Ensemble;
pub(crate) use link_status::LinkStatus;

use crate::session::LinkError;
use crate::session::link::transport::Io;
use crate::time::{Backoff, RetryPolicy};
use ensemble::Candidate;
use futures_util::stream::{FuturesOrdered, StreamExt};
use race::Race;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// A link that lived for less time than this does not reset the backoff, so that a server which accepts and
/// drops connections is not hammered.
const LIVED: Duration = Duration::from_secs(1);

/// Shortest pause between rounds. On average there are at most two rounds per second, and never more than a
/// second passes between two of them, so that a session is resumed soon.
const SHORTEST_PAUSE: Duration = Duration::from_millis(150);
const LONGEST_PAUSE: Duration = Duration::from_millis(990);

/// Minimum time for one attempt, however short the session timeout is.
const SHORTEST_ATTEMPT: Duration = Duration::from_millis(250);

/// Finds a server to connect to. A round dials all addresses in random order and soon concurrently; addresses
/// that were left with unanswered writes come last. Each round resolves the names again, and there is a pause
/// between rounds.
#[derive(Debug)]
pub(crate) struct Dialer {
    pub(in crate::session) ensemble: Ensemble,
    /// Where the last connection leads to.
    current: Option<Candidate>,
    /// Addresses of this round that were not tried yet.
    candidates: VecDeque<Candidate>,
    /// Number of addresses at the beginning of the round.
    addresses: usize,
    first_round: bool,
    /// Rounds since the session was last attached.
    rounds: u32,
    backoff: Backoff,
    attached_at: Option<Instant>,
}

/// Time of the first attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    Immediately,
    /// After a random pause, because other clients may have lost their sessions at the same time.
    Jittered,
}

impl Dialer {
    pub(crate) fn new(ensemble: Ensemble, start: Start) -> Self {
        Self {
            ensemble,
            current: None,
            candidates: VecDeque::new(),
            addresses: 0,
            first_round: start == Start::Immediately,
            rounds: 0,
            backoff: pace(),
            attached_at: None,
        }
    }

    /// Returns the time limit for connecting to one address and for the handshake there. Several addresses
    /// share the time, so that a silent address leaves time for the rest. The limit grows with each
    /// unsuccessful round, to accommodate slow servers.
    pub(crate) fn attempt_timeout(&self, session_timeout: Duration) -> Duration {
        let whole = session_timeout / 3;
        (whole / self.shares() * self.rounds.max(1)).min(whole).max(SHORTEST_ATTEMPT)
    }

    /// Records the step that the client waits for from now on, at the server of the last connection.
    pub(crate) fn waits_for(&self, step: impl FnOnce(String) -> LinkError) {
        if let Some(Candidate { server, .. }) = &self.current {
            self.ensemble.link_status.waits_for(Some(server), step(server.to_string()));
        }
    }

    /// Resolves when the server of the last connection is removed from the list.
    pub(crate) fn removed(&self) -> impl Future<Output = ()> + Send + use<> {
        let (mut servers, current) = (self.ensemble.servers.subscribe(), self.current.clone());
        async move {
            match current {
                Some(Candidate { server, .. }) => {
                    let _ = servers.wait_for(|servers| !servers.contains(&server)).await;
                }
                None => std::future::pending().await,
            }
        }
    }

    /// Returns true if all servers were tried in vain since the session was last attached, twice if there are
    /// several.
    pub(crate) fn is_again(&self) -> bool {
        self.rounds > self.shares().min(2)
    }

    /// Returns the number of addresses that share the time for a round.
    fn shares(&self) -> u32 {
        let addresses = self.addresses.max(self.ensemble.servers.borrow().len());
        u32::try_from(addresses.clamp(1, 3)).unwrap_or(3)
    }

    /// Records that the session was attached over the link dialled last.
    pub(crate) fn attached(&mut self) {
        self.attached_at = Some(Instant::now());
        self.rounds = 0;
        self.candidates = VecDeque::new();
        if let Some(current) = &self.current {
            self.ensemble.link_status.attached(current.to_string());
            // Through this server, its leader has answered for the session after every write sent there
            // earlier. No earlier write can still arrive.
            lock(&self.ensemble.abandoned).remove(&current.address);
        }
    }

    /// Records that the link was lost, or never got an attached session. If the link had `unanswered` writes,
    /// its server may still hold them. A session that is attached there again could let these writes through
    /// after the client has already compensated for them elsewhere (decision 11).
    pub(crate) fn lost(&mut self, error: LinkError, unanswered: bool) {
        if matches!(error, LinkError::Refused) {
            self.ensemble.link_status.refused();
        }
        if self.attached_at.is_some() {
            self.ensemble.link_status.lost(error.clone());
        }
        self.refused(error);
        if let Some(current) = self.current.as_ref().filter(|_| unanswered) {
            lock(&self.ensemble.abandoned).insert(current.address, Instant::now());
        }
        if self.attached_at.take().is_some_and(|at| at.elapsed() >= LIVED) {
            self.first_round = true;
            self.backoff = pace();
        }
    }

    /// Records that the session ended while a server served it.
    pub(crate) fn ended(&mut self) {
        if self.attached_at.take().is_some() {
            self.ensemble.link_status.ended();
        }
    }

    /// Records that the server of the last connection does not accept this client.
    pub(crate) fn refused(&self, error: LinkError) {
        self.ensemble.link_status.failed(self.current.as_ref().map(|current| &current.server), error);
    }

    /// Connects to the next reachable server, waiting as long as there is none.
    pub(crate) async fn next(&mut self, session_timeout: Duration) -> Box<dyn Io> {
        loop {
            if self.candidates.is_empty() {
                if self.rounds > 0 {
                    self.ensemble.link_status.unreachable();
                }
                self.next_round(session_timeout).await;
                self.rounds = self.rounds.saturating_add(1);
            }
            let limit = self.attempt_timeout(session_timeout);
            let race = Race::new(&self.ensemble, limit);
            let Some((candidate, io)) = race.run(&mut self.candidates).await else { continue };
            let Candidate { server, address, .. } = &candidate;
            // Event: The client established a network connection to a server. The session is not attached
            // yet.
            tracing::debug!(target: "docent::session", client = %self.ensemble.link_status.client(), %server, %address, "connection established");
            self.current = Some(candidate);
            return io;
        }
    }

    /// Returns the host of the last connection, as the connect string names it.
    pub(crate) fn host(&self) -> &str {
        self.current.as_ref().map_or("", |current| &current.server.host)
    }

    /// Returns the address of the last connection.
    pub(crate) fn server(&self) -> Option<SocketAddr> {
        self.current.as_ref().map(|current| current.address)
    }

    async fn next_round(&mut self, session_timeout: Duration) {
        if !std::mem::take(&mut self.first_round) {
            sleep(next_pause(&mut self.backoff)).await;
        }
        let mut candidates = self.resolve(self.attempt_timeout(session_timeout)).await;
        fastrand::shuffle(&mut candidates);
        let mut abandoned = lock(&self.ensemble.abandoned);
        // Older writes have been forwarded or dropped, or their session has ended.
        abandoned.retain(|_, at| at.elapsed() < session_timeout.saturating_mul(2));
        for candidate in &mut candidates {
            candidate.abandoned_at = abandoned.get(&candidate.address).copied();
        }
        // `None` sorts first. Servers with unanswered writes follow, the one that was left longest ago first.
        candidates.sort_by_key(|candidate| candidate.abandoned_at);
        self.addresses = candidates.len();
        self.candidates = candidates.into();
    }

    /// Returns the addresses of all servers. A name that does not resolve keeps its last known addresses.
    async fn resolve(&self, limit: Duration) -> Vec<Candidate> {
        let Ensemble { transport, known, .. } = &self.ensemble;
        let servers = self.ensemble.servers.borrow().clone();
        lock(known).retain(|server, _| servers.contains(server));
        let mut resolving: FuturesOrdered<_> =
            servers.iter().map(|server| timeout(limit, transport.resolve(server))).collect();
        let mut candidates = Vec::new();
        for server in &servers {
            let resolving_name = LinkError::Resolving { host: server.host.clone() };
            self.ensemble.link_status.waits_for(Some(server), resolving_name);
            let resolved = resolving.next().await.and_then(Result::ok);
            let (addresses, known_only) = match resolved
                .unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()))
            {
                Ok(addresses) if !addresses.is_empty() => {
                    lock(known).insert(server.clone(), addresses.clone());
                    (addresses, false)
                }
                failed => {
                    let error = failed.err().unwrap_or_else(|| io::Error::other("no address found"));
                    let error = LinkError::Resolve { host: server.host.clone(), source: Arc::new(error) };
                    // Event: The host name of a server could not be resolved. The client uses the
                    // addresses from the last successful lookup, if there are any.
                    // Action: Check the name service if this persists.
                    tracing::debug!(target: "docent::session", client = %self.ensemble.link_status.client(), %error, "name not resolved; using its last known addresses");
                    self.ensemble.link_status.failed(Some(server), error);
                    (lock(known).get(server).cloned().unwrap_or_default(), true)
                }
            };
            candidates.extend(addresses.into_iter().map(|address| Candidate {
                server: server.clone(),
                address,
                known_only,
                abandoned_at: None,
            }));
        }
        candidates
    }
}

/// Returns the backoff between rounds: short enough for a session to survive, jittered so that the clients of
/// a fleet do not reconnect simultaneously.
pub(in crate::session) fn pace() -> Backoff {
    RetryPolicy::exponential().between(Duration::from_millis(50), LONGEST_PAUSE).start()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn next_pause(backoff: &mut Backoff) -> Duration {
    backoff.next().unwrap_or(LONGEST_PAUSE).max(SHORTEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn rounds_are_at_most_two_in_a_second_on_average_and_never_a_second_apart() {
        const ROUNDS: u32 = 20_000;
        let mut backoff = pace();
        // The first five pauses are shorter.
        let early: Duration = (0..5).map(|_| next_pause(&mut backoff)).sum();
        assert!(early >= SHORTEST_PAUSE * 5);
        let pauses: Vec<_> = (0..ROUNDS).map(|_| next_pause(&mut backoff)).collect();
        assert!(pauses.iter().all(|pause| (SHORTEST_PAUSE..Duration::from_secs(1)).contains(pause)));
        let mean = pauses.iter().sum::<Duration>() / ROUNDS;
        assert!(mean >= Duration::from_millis(500), "a round each {mean:?}");
    }
}
