//! Search for a server to connect to: the list of servers, the order in which they are dialled, and the
//! reason why there is no link yet.

mod candidate;
mod ensemble;
mod known_addresses;
mod last_error;
mod left;
mod link_news;
mod race;

pub(crate) use ensemble::Ensemble;
pub(crate) use link_news::LinkNews;

use crate::session::LinkError;
use crate::session::connect_string::ServerAddress;
use crate::session::link::transport::Io;
use crate::time::{Backoff, RetryPolicy};
use candidate::Candidate;
use futures_util::stream::{FuturesOrdered, StreamExt};
use race::Race;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Links that lived shorter than this do not start the backoff over, so that a server which accepts and drops
/// is not hammered.
const LIVED: Duration = Duration::from_secs(1);

/// Shortest pause between rounds: there are at most two in a second on average, and never more than a second
/// passes between two, so that a session is found again soon.
const SHORTEST_PAUSE: Duration = Duration::from_millis(150);
const LONGEST_PAUSE: Duration = Duration::from_millis(990);

/// The least time an attempt gets, however short the session's timeout.
const SHORTEST_ATTEMPT: Duration = Duration::from_millis(250);

/// Finds a server to connect to. A round dials all addresses in random order and soon side by side, those
/// that were left with unanswered writes last. Names are resolved anew each round, with a pause between
/// rounds.
#[derive(Debug)]
pub(crate) struct Dialer {
    ensemble: Ensemble,
    /// Server and address of the last connection.
    current: Option<(ServerAddress, SocketAddr)>,
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
    AtOnce,
    /// After a random pause, because others may have lost their sessions at the same time.
    Jittered,
}

impl Dialer {
    pub(crate) fn new(ensemble: Ensemble, start: Start) -> Self {
        Self {
            ensemble,
            current: None,
            candidates: VecDeque::new(),
            addresses: 0,
            first_round: start == Start::AtOnce,
            rounds: 0,
            backoff: pace(),
            attached_at: None,
        }
    }

    /// Time limit for a connection to one address, and for the handshake there. Several addresses get a share
    /// each, so that a silent one leaves time for the others; the limit grows with each round that brought
    /// nothing, for servers that are slow.
    pub(crate) fn attempt_timeout(&self, session_timeout: Duration) -> Duration {
        let addresses = self.addresses.max(self.ensemble.servers.get().len());
        let shares = u32::try_from(addresses.clamp(1, 3)).unwrap_or(3);
        let whole = session_timeout / 3;
        (whole / shares * self.rounds.max(1)).min(whole).max(SHORTEST_ATTEMPT)
    }

    /// Takes note that the servers were asked and are not restored from an older copy: the suspicion begins
    /// anew.
    pub(crate) fn not_rolled_back(&self) {
        self.ensemble.refusals.clear();
    }

    /// Resolves when the server of the last connection is taken off the list.
    pub(crate) fn removed(&self) -> impl Future<Output = ()> + Send + use<> {
        let (servers, current) = (self.ensemble.servers.clone(), self.current.clone());
        async move {
            match current {
                Some((server, _)) => servers.removed(&server).await,
                None => std::future::pending().await,
            }
        }
    }

    /// True when servers have refused to talk to this client for so long that they may have been restored
    /// from an older copy.
    pub(crate) fn suspects_rollback(&self, session_timeout: Duration) -> bool {
        self.ensemble.refusals.are_suspicious(session_timeout)
    }

    /// Takes note that the session was attached over the link that was dialled last.
    pub(crate) fn attached(&mut self) {
        self.attached_at = Some(Instant::now());
        self.rounds = 0;
        self.candidates = VecDeque::new();
        self.ensemble.last_error.clear();
        self.ensemble.refusals.clear();
        if let Some((server, address)) = &self.current {
            let server = Candidate::new(server.clone(), *address);
            self.ensemble.news.attached(server.to_string());
            // Its leader has answered for the session through it, after all writes that went to it before:
            // none of them is still to come.
            self.ensemble.left.forget(*address);
        }
    }

    /// Takes note that the link is gone, or never came to an attached session. If it had writes that are
    /// `unanswered`, its server may still hold them; a session that is attached there again could let them
    /// pass after they were made up for elsewhere (decision 11).
    pub(crate) fn lost(&mut self, error: LinkError, unanswered: bool) {
        if matches!(error, LinkError::Refused) {
            self.ensemble.refusals.note();
        }
        if self.attached_at.is_some() {
            self.ensemble.news.lost(error.clone());
        }
        self.ensemble.last_error.set(error);
        if let Some((_, address)) = self.current.as_ref().filter(|_| unanswered) {
            self.ensemble.left.note(*address);
        }
        if self.attached_at.take().is_some_and(|at| at.elapsed() >= LIVED) {
            self.first_round = true;
            self.backoff = pace();
        }
    }

    /// Connects to the next server that can be connected to. Waits for as long as there is none.
    pub(crate) async fn next(&mut self, session_timeout: Duration) -> Box<dyn Io> {
        loop {
            if self.candidates.is_empty() {
                self.tell_unreachable();
                self.next_round(session_timeout).await;
                self.rounds = self.rounds.saturating_add(1);
            }
            let limit = self.attempt_timeout(session_timeout);
            let race = Race::new(&self.ensemble, limit);
            let Some((Candidate { server, address, .. }, io)) = race.run(&mut self.candidates).await else {
                continue;
            };
            tracing::debug!(%server, %address, "connected");
            self.current = Some((server, address));
            return io;
        }
    }

    /// Tells once that the round which is over brought no link.
    fn tell_unreachable(&self) {
        if self.rounds > 0 {
            self.ensemble.news.unreachable(self.ensemble.last_error.get().as_deref());
        }
    }

    /// Address of the last connection.
    pub(crate) fn server(&self) -> Option<SocketAddr> {
        self.current.as_ref().map(|(_, address)| *address)
    }

    /// News of the client's own link.
    pub(crate) fn news(&self) -> &LinkNews {
        &self.ensemble.news
    }

    async fn next_round(&mut self, session_timeout: Duration) {
        if !std::mem::take(&mut self.first_round) {
            sleep(next_pause(&mut self.backoff)).await;
        }
        let mut candidates = self.resolve(self.attempt_timeout(session_timeout)).await;
        fastrand::shuffle(&mut candidates);
        let left = self.ensemble.left.since(session_timeout);
        for candidate in &mut candidates {
            candidate.left_at = left.get(&candidate.address).copied();
        }
        // `None` comes first; of servers with unanswered writes the one that was left longest ago.
        candidates.sort_by_key(|candidate| candidate.left_at);
        self.addresses = candidates.len();
        self.candidates = candidates.into();
    }

    /// The addresses of all servers, or for names that do not resolve those that they had.
    async fn resolve(&self, limit: Duration) -> Vec<Candidate> {
        let Ensemble { transport, known, .. } = &self.ensemble;
        let servers = self.ensemble.servers.get();
        known.keep(&servers);
        let mut resolving: FuturesOrdered<_> =
            servers.iter().map(|server| timeout(limit, transport.resolve(server))).collect();
        let mut candidates = Vec::new();
        for server in &servers {
            self.ensemble.last_error.wait_for(LinkError::Resolving { host: server.host.clone() });
            let resolved = resolving.next().await.and_then(Result::ok);
            let (addresses, known_only) =
                match resolved.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into())) {
                    Ok(addresses) if !addresses.is_empty() => {
                        known.set(server, &addresses);
                        (addresses, false)
                    }
                    failed => {
                        let error = failed.err().unwrap_or_else(|| io::Error::other("it has no address"));
                        let error = LinkError::Resolve { host: server.host.clone(), source: Arc::new(error) };
                        tracing::debug!(%error, "the last known addresses are used");
                        self.ensemble.last_error.set(error);
                        (known.get(server), true)
                    }
                };
            candidates.extend(
                addresses
                    .into_iter()
                    .map(|address| Candidate { known_only, ..Candidate::new(server.clone(), address) }),
            );
        }
        candidates
    }
}

/// Pauses between rounds: short enough that a session survives, jittered so that a fleet does not come back
/// in step.
pub(in crate::session) fn pace() -> Backoff {
    RetryPolicy::exponential().between(Duration::from_millis(50), LONGEST_PAUSE).start()
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
        // The first five come faster.
        let early: Duration = (0..5).map(|_| next_pause(&mut backoff)).sum();
        assert!(early >= SHORTEST_PAUSE * 5);
        let pauses: Vec<_> = (0..ROUNDS).map(|_| next_pause(&mut backoff)).collect();
        assert!(pauses.iter().all(|pause| (SHORTEST_PAUSE..Duration::from_secs(1)).contains(pause)));
        let mean = pauses.iter().sum::<Duration>() / ROUNDS;
        assert!(mean >= Duration::from_millis(500), "a round each {mean:?}");
    }
}
