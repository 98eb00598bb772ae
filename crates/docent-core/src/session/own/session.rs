use super::driver::Driver;
use super::machine::{Deliveries, Machine};
use crate::session::lease::Lease;
use crate::session::{
    Cause, Lane, LinkState, Outcome, Pending, PersistentWatch, Registration, Session, SessionCloser,
    SessionEnd, SessionSettings, Watch, WatchKind, Withdraw, link::dialer::Dialer,
};
use crate::task::WakeFlag;
use crate::time::Clock;
use docent_proto::Request;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;

/// Docent's own session over ZooKeeper's wire protocol.
#[derive(Clone)]
pub(crate) struct WireSession(Arc<SharedMachine>);

/// State shared by calls and the driver: the machine, and a bell for the driver.
pub(super) struct SharedMachine {
    machine: Mutex<Machine>,
    /// Rung when the driver has something to do.
    pub(super) bell: WakeFlag,
    /// Notified when a request has an earlier deadline than all previous ones.
    pub(super) sooner: Notify,
    pub(super) clock: Arc<dyn Clock>,
    link: watch::Sender<LinkState>,
}

impl WireSession {
    /// Opens a session. It lives as long as the returned future is polled; the future resolves when the
    /// session ends.
    pub(crate) fn open(
        settings: SessionSettings,
        lease: Arc<Lease>,
        clock: Arc<dyn Clock>,
        dialer: Dialer,
    ) -> (Self, impl Future<Output = SessionEnd> + Send + use<>) {
        let machine = Machine::new(settings, lease, clock.now());
        let link = watch::Sender::new(machine.link_state());
        let shared = Arc::new(SharedMachine {
            machine: Mutex::new(machine),
            bell: WakeFlag::default(),
            sooner: Notify::new(),
            clock,
            link,
        });
        let driver = Driver { shared: Arc::clone(&shared), dialer };
        (Self(shared), driver.run())
    }

    fn pending(&self, submitted: Result<(u64, oneshot::Receiver<Outcome>), Cause>) -> Pending {
        match submitted {
            Ok((id, outcome)) => {
                self.0.bell.ring();
                Pending::waiting(outcome, id, Arc::clone(&self.0) as Arc<dyn Withdraw>)
            }
            Err(cause) => Pending::ready(Outcome::NotSent(cause)),
        }
    }
}

impl SharedMachine {
    pub(super) fn lock(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the machine, then delivers the resulting outcomes and events, in order and without the lock.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Machine) -> R) -> R {
        self.change_with(&mut Deliveries::default(), change)
    }

    /// Like [`change`](Self::change), with a reusable buffer for `deliveries`, which is empty before and
    /// after the call.
    pub(super) fn change_with<R>(
        &self,
        deliveries: &mut Deliveries,
        change: impl FnOnce(&mut Machine) -> R,
    ) -> R {
        let (result, link) = {
            let mut machine = self.lock();
            let result = change(&mut machine);
            machine.swap_deliveries(deliveries);
            (result, machine.link_change())
        };
        // Published first, so that a caller who learns of the lost link also sees it counted.
        if let Some(link) = link {
            self.link.send_replace(link);
        }
        deliveries.deliver();
        result
    }
}

impl Session for WireSession {
    fn submit(&self, request: Request, lane: Lane) -> Pending {
        let submitted = self.0.lock().submit(request, lane, None);
        self.pending(submitted)
    }

    fn submit_on(&self, request: Request, lane: Lane, losses: u64, watch: Option<&Watch>) -> Pending {
        let submitted = self.0.lock().submit_on(request, lane, losses, watch);
        self.pending(submitted)
    }

    fn too_large_for_servers(&self, request: &Request) -> Option<Cause> {
        self.0.lock().too_large_for_servers(request, self.0.clock.now())
    }

    fn watch_below(&self, path: &str) -> Option<PersistentWatch> {
        let (id, signals) = self.0.lock().watch_below(path)?;
        self.0.bell.ring();
        let session = Arc::clone(&self.0) as Arc<dyn Withdraw>;
        let registration = Registration { id, path: path.into(), kind: WatchKind::Persistent, session };
        Some(PersistentWatch { signals, registration })
    }

    fn has_persistent(&self) -> bool {
        self.0.lock().has_persistent()
    }

    fn owns(&self, path: &str) {
        self.0.lock().ephemerals.owns(path);
    }

    fn submit_until(&self, request: Request, deadline: Instant) -> Pending {
        let (submitted, sooner) = {
            let mut machine = self.0.lock();
            let expiry = machine.requests.next_expiry;
            let submitted = machine.submit(request, Lane::Call, Some(deadline));
            (submitted, machine.requests.next_expiry != expiry)
        };
        if sooner {
            self.0.sooner.notify_one();
        }
        self.pending(submitted)
    }

    fn owned(&self) -> Vec<String> {
        self.0.lock().ephemerals.paths()
    }

    fn has_certainly_ended(&self) -> bool {
        self.0.lock().has_certainly_ended()
    }

    fn id(&self) -> i64 {
        self.0.lock().id()
    }

    fn last_zxid(&self) -> i64 {
        self.0.lock().seen_zxid()
    }

    fn link(&self) -> watch::Receiver<LinkState> {
        self.0.link.subscribe()
    }

    fn orders_events(&self) -> bool {
        true
    }

    fn closer(&self) -> Option<SessionCloser> {
        self.0.lock().closer()
    }

    fn drain(&self) {
        self.0.change(Machine::drain);
        self.0.bell.ring();
    }

    fn abandon(&self) {
        self.0.change(|machine| machine.end(SessionEnd::Abandoned));
        self.0.bell.ring();
    }

    fn close(&self) {
        self.0.change(Machine::close);
        self.0.bell.ring();
    }
}

impl Withdraw for SharedMachine {
    fn withdraw(&self, id: u64) -> bool {
        self.lock().requests.withdraw(id)
    }

    fn unregister(&self, id: u64, path: &str, kind: WatchKind) {
        self.lock().unregister(id, path, kind);
        self.bell.ring();
    }
}

impl fmt::Debug for SharedMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WireSession").finish_non_exhaustive()
    }
}

impl fmt::Debug for WireSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WireSession({:#x})", self.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::link::dialer::{Ensemble, Start};
    use crate::session::link::transport::TcpTransport;
    use crate::telemetry::Instruments;
    use crate::time::TokioClock;
    use std::time::Duration;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns a session that finds no server.
    fn without_servers() -> WireSession {
        let settings = SessionSettings {
            timeout: SECOND * 30,
            last_zxid: 0,
            queue_limit: 10,
            inbound_limit: 1024,
            outbound_limit: 1024,
            ephemeral_limit: 64 * 1024,
            credentials: Vec::new(),
            sasl: None,
            only_reads: false,
            abilities: Arc::default(),
        };
        let (lease, clock) = (Arc::new(Lease::new(SECOND)), Arc::new(TokioClock::new()));
        let dialer = Dialer::new(
            Ensemble::new(Arc::new(TcpTransport), Vec::new(), Arc::new(Instruments::new(&"1".into()))),
            Start::Immediately,
        );
        let (session, run) = WireSession::open(settings, lease, clock, dialer);
        tokio::spawn(run);
        session
    }

    #[tokio::test(start_paused = true)]
    async fn requests_end_at_their_deadlines_in_whatever_order_without_a_link() {
        let session = without_servers();
        let start = Instant::now();
        let get = || Request::GetData { path: "/a".to_owned(), watch: false };
        let late = session.submit_until(get(), start + SECOND * 10);
        // The session first waits for that deadline, and then learns of an earlier one.
        tokio::time::sleep(SECOND).await;
        let early = session.submit_until(get(), start + SECOND * 3);
        for (pending, seconds) in [(early, 3), (late, 10)] {
            assert!(matches!(pending.await, Outcome::NotSent(Cause::Deadline)));
            let after = start.elapsed();
            assert!(after >= SECOND * seconds && after < SECOND * seconds + SECOND / 10, "{after:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_of_a_session_without_own_timers_ends_at_its_deadline() {
        let session = without_servers();
        let start = Instant::now();
        let get = Request::GetData { path: "/a".to_owned(), watch: false };
        let pending = session.submit(get, Lane::Call).until(start + SECOND * 3);
        assert!(matches!(pending.await, Outcome::NotSent(Cause::Deadline)));
        assert!(!session.0.lock().requests.withdraw(1), "the request was already withdrawn");
        assert!(start.elapsed() >= SECOND * 3);
    }
}
