use super::bell::Bell;
use super::driver::Driver;
use super::machine::{Deliveries, Machine};
use super::{
    Farewell, Lane, LinkState, Outcome, Pending, Session, SessionEnd, SessionSettings, WatchKind, Withdraw,
    dialer::Dialer,
};
use crate::clock::Clock;
use crate::lease::Lease;
use docent_proto::Request;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Our own session over ZooKeeper's wire protocol.
#[derive(Clone)]
pub(crate) struct WireSession(Arc<Shared>);

/// What calls and the driver share: the machine, and a bell for the driver.
pub(super) struct Shared {
    machine: Mutex<Machine>,
    /// Rung when there is something new for the driver.
    pub(super) bell: Bell,
    pub(super) clock: Arc<dyn Clock>,
    link: watch::Sender<LinkState>,
}

impl WireSession {
    /// Opens a session. It lives as long as the returned future is polled; the future resolves when it ends.
    pub(crate) fn open(
        settings: SessionSettings,
        lease: Arc<Lease>,
        clock: Arc<dyn Clock>,
        dialer: Dialer,
    ) -> (Self, impl Future<Output = SessionEnd> + Send + use<>) {
        let machine = Machine::new(settings, lease, clock.now());
        let link = watch::Sender::new(machine.link_state());
        let shared = Arc::new(Shared { machine: Mutex::new(machine), bell: Bell::default(), clock, link });
        let driver = Driver::new(Arc::clone(&shared), dialer);
        (Self(shared), driver.run())
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the machine, then delivers what came of it, in that order and without the lock.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Machine) -> R) -> R {
        let (result, deliveries, link) = {
            let mut machine = self.lock();
            let result = change(&mut machine);
            (result, machine.deliveries(), machine.link_change())
        };
        Deliveries::deliver(deliveries);
        if let Some(link) = link {
            self.link.send_replace(link);
        }
        result
    }
}

impl Session for WireSession {
    fn submit(&self, request: Request, lane: Lane) -> Pending {
        let submitted = self.0.lock().submit(request, lane);
        match submitted {
            Ok((id, outcome)) => {
                self.0.bell.ring();
                Pending::waiting(outcome, id, Arc::clone(&self.0) as Arc<dyn Withdraw>)
            }
            Err(cause) => Pending::ready(Outcome::NotSent(cause)),
        }
    }

    fn id(&self) -> i64 {
        self.0.lock().id()
    }

    fn last_zxid(&self) -> i64 {
        self.0.lock().last_zxid()
    }

    fn link(&self) -> watch::Receiver<LinkState> {
        self.0.link.subscribe()
    }

    fn orders_events(&self) -> bool {
        true
    }

    fn farewell(&self) -> Option<Farewell> {
        self.0.lock().farewell()
    }

    fn drain(&self) {
        self.0.change(Machine::drain);
        self.0.bell.ring();
    }

    fn close(&self) {
        self.0.change(Machine::close);
        self.0.bell.ring();
    }
}

impl Withdraw for Shared {
    fn withdraw(&self, id: u64) -> bool {
        self.lock().withdraw(id)
    }

    fn unregister(&self, id: u64, path: &str, kind: WatchKind) {
        self.lock().unregister(id, path, kind);
        self.bell.ring();
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WireSession").finish_non_exhaustive()
    }
}

impl fmt::Debug for WireSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WireSession({:#x})", self.id())
    }
}
