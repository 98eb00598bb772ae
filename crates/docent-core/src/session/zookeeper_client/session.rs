use super::connect::Connect;
use super::shared::{Shared, State};
use super::{ZookeeperClient, driver};
use crate::session::lease::Lease;
use crate::session::link::dialer::{Ensemble, Start};
use crate::session::requests::{Phase, Requests, admit};
use crate::session::{
    Cause, Lane, LinkState, Outcome, Pending, PersistentWatch, Session, SessionCloser, SessionEnd,
    SessionSettings, Watch, Withdraw,
};
use crate::time::Clock;
use docent_proto::Request;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

/// A session that runs on the crate `zookeeper-client`.
#[derive(Clone)]
pub(crate) struct ZookeeperClientSession(Arc<Shared>);

impl ZookeeperClientSession {
    /// Opens a session. It lives as long as the returned future is polled; the future resolves when the
    /// session ends.
    pub(crate) fn open(
        settings: SessionSettings,
        lease: Arc<Lease>,
        clock: Arc<dyn Clock>,
        options: ZookeeperClient,
        ensemble: Ensemble,
        start: Start,
    ) -> (Self, impl Future<Output = SessionEnd> + Send + use<>) {
        let (calls, queue) = mpsc::unbounded_channel();
        let knows_min_timeout = options.least_timeout.is_some();
        let connect = Connect::new(options, ensemble, start);
        let shared = Arc::new(Shared::new(settings, lease, clock, calls, knows_min_timeout));
        (Self(Arc::clone(&shared)), driver::run(shared, queue, connect))
    }

    fn enqueue(
        &self,
        state: &mut State,
        request: Request,
        lane: Lane,
        tie: impl FnOnce(&mut Requests, u64),
    ) -> Pending {
        let waiting = state.waiting.len() + state.in_flight;
        if let Err(cause) = admit(&request, lane, *self.0.phase.borrow(), waiting, &self.0.settings) {
            return Pending::ready(Outcome::NotSent(cause));
        }
        let (done, outcome) = oneshot::channel();
        let id = state.waiting.push(request, lane, None, Some(done));
        tie(&mut state.waiting, id);
        self.0.send_waiting(state);
        Pending::waiting(outcome, id, Arc::clone(&self.0) as Arc<dyn Withdraw>)
    }
}

impl Session for ZookeeperClientSession {
    fn submit(&self, request: Request, lane: Lane) -> Pending {
        self.enqueue(&mut self.0.lock(), request, lane, |_, _| {})
    }

    /// The crate reports lost links with a short delay. A request submitted during that delay may be sent on
    /// the next link.
    fn submit_on(&self, request: Request, lane: Lane, losses: u64, _watch: Option<&Watch>) -> Pending {
        let mut state = self.0.lock();
        if state.down_since.is_some() || self.0.link.borrow().losses != losses {
            return Pending::ready(Outcome::NotSent(Cause::LinkLost));
        }
        self.enqueue(&mut state, request, lane, Requests::tie)
    }

    /// Returns `None`, because the crate does not report why a link was lost.
    fn too_large_for_servers(&self, _request: &Request) -> Option<Cause> {
        None
    }

    /// Returns `None`, because the crate does not restore persistent watches on a new link.
    fn watch_below(&self, _path: &str) -> Option<PersistentWatch> {
        None
    }

    fn has_persistent(&self) -> bool {
        false
    }

    fn owns(&self, path: &str) {
        self.0.lock().ephemerals.owns(path);
    }

    fn owned(&self) -> Vec<String> {
        self.0.lock().ephemerals.paths()
    }

    /// The crate does not report whether its request to close was answered, so a close on an attached link
    /// counts as answered.
    fn has_certainly_ended(&self) -> bool {
        let state = self.0.lock();
        match *self.0.phase.borrow() {
            Phase::Ended(SessionEnd::Expired) => true,
            Phase::Ended(SessionEnd::Closed) => state.down_since.is_none(),
            _ => state.id == 0,
        }
    }

    fn id(&self) -> i64 {
        self.0.lock().id
    }

    fn last_zxid(&self) -> i64 {
        self.0.lock().last_zxid
    }

    fn link(&self) -> watch::Receiver<LinkState> {
        self.0.link.subscribe()
    }

    fn refuses_guards(&self) -> Option<&'static str> {
        let unknown = "the smallest session timeout that the servers grant must be set by \
                       `ZookeeperClient::least_timeout`";
        (!self.0.knows_min_timeout).then_some(unknown)
    }

    fn orders_events(&self) -> bool {
        false
    }

    /// Returns `None`, because the crate does not reveal the password. The crate closes the session if it
    /// reconnects.
    fn closer(&self) -> Option<SessionCloser> {
        None
    }

    fn drain(&self) {
        self.0.advance(Phase::Draining, |state, finished| {
            state.waiting.end(SessionEnd::Closed, Lane::is_call, finished);
        });
    }

    fn abandon(&self) {
        self.0.end(SessionEnd::Abandoned);
    }

    fn close(&self) {
        self.drain();
        self.0.advance(Phase::Closing, |state, _| {
            self.0.send_waiting(state);
            if state.waiting.len() == 0 {
                state.client = None;
            }
        });
    }
}

impl fmt::Debug for ZookeeperClientSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ZookeeperClientSession({:#x})", self.id())
    }
}
