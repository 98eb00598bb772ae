use super::LinkError;
use super::rollback::Refusals;
use super::transport::{Io, Transport};
use crate::connect_string::ServerAddress;
use crate::retry::{Backoff, RetryPolicy};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Links that lived shorter than this do not start the backoff over, so that a server which accepts and drops is not
/// hammered.
const LIVED: Duration = Duration::from_secs(1);

/// Between rounds: at most two in a second on average, and none a second after the last, so that a session is found again soon.
const SHORTEST_PAUSE: Duration = Duration::from_millis(150);
const LONGEST_PAUSE: Duration = Duration::from_millis(990);

/// The least time an attempt gets, however short the session's timeout.
const SHORTEST_ATTEMPT: Duration = Duration::from_millis(250);

/// Finds a server to talk to: all of them in random order, names resolved anew each round, a pause between rounds.
#[derive(Debug)]
pub(crate) struct Dialer {
    ensemble: Ensemble,
    /// The server that was connected to last.
    current: Option<ServerAddress>,
    /// What is left of this round.
    candidates: Vec<(ServerAddress, SocketAddr)>,
    first_round: bool,
    /// Rounds since the session was last attached.
    rounds: u32,
    backoff: Backoff,
    attached_at: Option<Instant>,
}

/// What a client knows of its servers, over all of its sessions.
#[derive(Debug, Clone)]
pub(crate) struct Ensemble {
    transport: Arc<dyn Transport>,
    pub(crate) servers: Servers,
    pub(crate) last_error: LastError,
    refusals: Refusals,
}

impl Ensemble {
    pub(crate) fn new(transport: Arc<dyn Transport>, servers: Vec<ServerAddress>) -> Self {
        Self {
            transport,
            servers: Servers::new(servers),
            last_error: LastError::default(),
            refusals: Refusals::default(),
        }
    }

    /// The same servers, for links besides the client's own: what becomes of those is no news of the client's.
    pub(super) fn aside(&self) -> Self {
        Self { last_error: LastError::default(), refusals: Refusals::default(), ..self.clone() }
    }
}

/// The servers to talk to, as they are now.
#[derive(Debug, Clone)]
pub(crate) struct Servers(Arc<watch::Sender<Vec<ServerAddress>>>);

impl Servers {
    pub(crate) fn new(servers: Vec<ServerAddress>) -> Self {
        Self(Arc::new(watch::Sender::new(servers)))
    }

    pub(crate) fn set(&self, servers: Vec<ServerAddress>) {
        self.0.send_replace(servers);
    }

    pub(crate) fn get(&self) -> Vec<ServerAddress> {
        self.0.borrow().clone()
    }

    /// Resolves when `server` is not among them.
    pub(super) async fn removed(&self, server: &ServerAddress) {
        let mut servers = self.0.subscribe();
        let _ = servers.wait_for(|servers| !servers.contains(server)).await;
    }
}

/// Why there is no link, for the errors of operations that wait for one.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastError(Arc<Mutex<NoLink>>);

#[derive(Debug, Default)]
struct NoLink {
    error: Option<Arc<LinkError>>,
    /// What is waited for.
    attempt: Option<Arc<LinkError>>,
}

impl LastError {
    fn lock(&self) -> MutexGuard<'_, NoLink> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, error: LinkError) {
        self.lock().error = Some(Arc::new(error));
    }

    /// Notes what is waited for from now on.
    pub(crate) fn wait_for(&self, attempt: LinkError) {
        self.lock().attempt = Some(Arc::new(attempt));
    }

    /// There is a link.
    pub(crate) fn clear(&self) {
        *self.lock() = NoLink::default();
    }

    pub(crate) fn get(&self) -> Option<Arc<LinkError>> {
        self.lock().error.clone()
    }

    /// The last error or, before there was any, what is waited for.
    pub(crate) fn why(&self) -> Option<Arc<LinkError>> {
        let no_link = self.lock();
        no_link.error.clone().or_else(|| no_link.attempt.clone())
    }
}

/// When the first attempt is made.
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
            candidates: Vec::new(),
            first_round: start == Start::AtOnce,
            rounds: 0,
            backoff: pace(),
            attached_at: None,
        }
    }

    /// How long connecting and shaking hands with one server may take: with several servers a share each, so that one
    /// that does not answer leaves time for the others; more with each round that brought nothing, for servers that are slow.
    pub(crate) fn attempt_timeout(&self, session_timeout: Duration) -> Duration {
        let shares = u32::try_from(self.ensemble.servers.get().len().clamp(1, 3)).unwrap_or(3);
        let whole = session_timeout / 3;
        (whole / shares * self.rounds.max(1)).min(whole).max(SHORTEST_ATTEMPT)
    }

    /// Servers were asked, and are not restored from an older copy: it begins anew.
    pub(crate) fn not_rolled_back(&self) {
        self.ensemble.refusals.clear();
    }

    /// Resolves when the server that was connected to last is not to be used any more.
    pub(crate) fn removed(&self) -> impl Future<Output = ()> + Send + use<> {
        let (servers, current) = (self.ensemble.servers.clone(), self.current.clone());
        async move {
            match current {
                Some(current) => servers.removed(&current).await,
                None => std::future::pending().await,
            }
        }
    }

    /// True when servers have refused to talk to this client for so long that they may have been restored from an older copy.
    pub(crate) fn suspects_rollback(&self, session_timeout: Duration) -> bool {
        self.ensemble.refusals.are_suspicious(session_timeout)
    }

    /// The session was attached over the link that was dialled last.
    pub(crate) fn attached(&mut self) {
        self.attached_at = Some(Instant::now());
        self.rounds = 0;
        self.candidates.clear();
        self.ensemble.last_error.clear();
        self.ensemble.refusals.clear();
    }

    /// The link is gone, or never came to an attached session.
    pub(crate) fn lost(&mut self, error: LinkError) {
        if matches!(error, LinkError::Refused) {
            self.ensemble.refusals.note();
        }
        self.ensemble.last_error.set(error);
        if self.attached_at.take().is_some_and(|at| at.elapsed() >= LIVED) {
            self.first_round = true;
            self.backoff = pace();
        }
    }

    /// Connects to the next server that can be connected to. Waits for as long as there is none.
    pub(crate) async fn next(&mut self, session_timeout: Duration) -> Box<dyn Io> {
        loop {
            let limit = self.attempt_timeout(session_timeout);
            let Some((server, address)) = self.candidates.pop() else {
                self.next_round(limit).await;
                self.rounds = self.rounds.saturating_add(1);
                continue;
            };
            self.wait_for(LinkError::Connecting { server: shown(&server, address) });
            match tokio::time::timeout(limit, self.ensemble.transport.dial(&server, address)).await {
                Ok(Ok(io)) => {
                    tracing::debug!(%server, %address, "connected");
                    self.wait_for(LinkError::Greeting { server: shown(&server, address) });
                    self.current = Some(server);
                    return io;
                }
                Ok(Err(error)) => {
                    let server = shown(&server, address);
                    self.failed(LinkError::Dial { server, source: Arc::new(error) });
                }
                Err(_) => self.failed(LinkError::DialTimeout {
                    server: shown(&server, address),
                    seconds: limit.as_secs_f64(),
                }),
            }
        }
    }

    async fn next_round(&mut self, limit: Duration) {
        if !std::mem::take(&mut self.first_round) {
            tokio::time::sleep(next_pause(&mut self.backoff)).await;
        }
        for server in self.ensemble.servers.get() {
            self.wait_for(LinkError::Resolving { host: server.host.clone() });
            let resolved = tokio::time::timeout(limit, self.ensemble.transport.resolve(&server)).await;
            match resolved.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
                Ok(addresses) => {
                    self.candidates.extend(addresses.into_iter().map(|address| (server.clone(), address)));
                }
                Err(error) => {
                    self.failed(LinkError::Resolve { host: server.host, source: Arc::new(error) });
                }
            }
        }
        fastrand::shuffle(&mut self.candidates);
    }

    fn wait_for(&self, attempt: LinkError) {
        self.ensemble.last_error.wait_for(attempt);
    }

    fn failed(&self, error: LinkError) {
        tracing::debug!(%error, "no link");
        self.ensemble.last_error.set(error);
    }
}

fn shown(server: &ServerAddress, address: SocketAddr) -> String {
    let (server, address) = (server.to_string(), address.to_string());
    if server == address { server } else { format!("{server} ({address})") }
}

/// Between rounds: soon enough that a session survives, jittered so that a fleet does not come back in step.
pub(super) fn pace() -> Backoff {
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
