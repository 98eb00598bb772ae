use crate::trap::{Effect, Trap};
use docent_checker::ClientId;
use docent_proto::Request;
use std::future::Future;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Controls of one client's process: the faults that the world can do to it from outside, and the state it
/// can see. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Controls(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    frozen: bool,
    dying: bool,
    /// Of what waits for the process to go on.
    wakers: Vec<Waker>,
    /// Servers at which the network swallows the client's messages.
    cut: Vec<IpAddr>,
    traps: Vec<Trap>,
    /// Something was granted since this was last asked for.
    granted: bool,
    /// All that the host's clients had, the present one last.
    sessions: Vec<(i64, ClientId)>,
}

impl Controls {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process stands still from now on.
    pub(crate) fn freeze(&self) {
        self.lock().frozen = true;
    }

    /// The process goes on.
    pub(crate) fn thaw(&self) {
        let wakers = {
            let mut inner = self.lock();
            inner.frozen = false;
            std::mem::take(&mut inner.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.lock().frozen
    }

    /// Ready unless the process stands still.
    pub(crate) fn poll_running(&self, cx: &Context<'_>) -> Poll<()> {
        let mut inner = self.lock();
        if !inner.frozen {
            return Poll::Ready(());
        }
        if !inner.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            inner.wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Polls `future` only while the process does not stand still.
    pub(crate) async fn gate<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        std::future::poll_fn(|cx| match self.poll_running(cx) {
            Poll::Ready(()) => Pin::as_mut(&mut future).poll(cx),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// The process dies at once: handles that it drops from now on record nothing.
    pub(crate) fn dies(&self) {
        self.lock().dying = true;
    }

    pub(crate) fn is_dying(&self) -> bool {
        self.lock().dying
    }

    /// Says whether the network swallows messages to `server`, so that dials there go unanswered.
    pub(crate) fn set_cut(&self, server: IpAddr, cut: bool) {
        let mut inner = self.lock();
        inner.cut.retain(|other| *other != server);
        if cut {
            inner.cut.push(server);
        }
    }

    pub(crate) fn is_cut(&self, server: IpAddr) -> bool {
        self.lock().cut.contains(&server)
    }

    /// Waits for a request.
    pub(crate) fn arm(&self, trap: Trap) {
        self.lock().traps.push(trap);
    }

    pub(crate) fn disarm(&self) {
        self.lock().traps.clear();
    }

    /// Effect of the traps on a request; `None` is the request that opens or takes up a session.
    pub(crate) fn spring(&self, request: Option<&Request>) -> Option<Effect> {
        let traps = &mut self.lock().traps;
        let sprung = traps.iter_mut().position(|trap| trap.meets(request))?;
        Some(traps.swap_remove(sprung).effect())
    }

    /// True when the link must be reset in place of an event that comes right after another.
    pub(crate) fn springs_at_next_event(&self) -> bool {
        let traps = &mut self.lock().traps;
        let sprung = traps.iter_mut().position(Trap::meets_next_event);
        sprung.map(|index| traps.swap_remove(index)).is_some()
    }

    /// Something was granted to the client.
    pub(crate) fn granted(&self) {
        self.lock().granted = true;
    }

    /// Whether something was granted since this was called last.
    pub(crate) fn take_granted(&self) -> bool {
        std::mem::take(&mut self.lock().granted)
    }

    /// A client has taken up this session.
    pub(crate) fn attached(&self, session: i64, client: ClientId) {
        let sessions = &mut self.lock().sessions;
        // It may take up an earlier one once more to end it.
        if !sessions.contains(&(session, client)) {
            sessions.push((session, client));
        }
    }

    /// The newest session of a client.
    pub(crate) fn session(&self) -> Option<i64> {
        self.lock().sessions.last().map(|(session, _)| *session)
    }

    /// All sessions there were, and whose.
    pub(crate) fn sessions(&self) -> Vec<(i64, ClientId)> {
        self.lock().sessions.clone()
    }

    /// A new process takes the place of the old one.
    pub(crate) fn reborn(&self) {
        let mut inner = self.lock();
        inner.wakers.clear();
        inner.traps.clear();
        (inner.frozen, inner.dying) = (false, false);
    }
}
