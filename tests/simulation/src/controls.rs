use crate::trap::{Effect, Trap};
use docent_checker::ClientId;
use docent_proto::Request;
use std::future::Future;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Controls of one client's process: the faults that the world can inflict on it, and the state that the
/// world can read. Clones share the same state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Controls(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    frozen: bool,
    dying: bool,
    /// Wakers of futures that wait for the process to resume.
    wakers: Vec<Waker>,
    /// Servers to which the network loses the client's messages.
    cut: Vec<IpAddr>,
    traps: Vec<Trap>,
    /// Whether something was granted since the last call of `take_granted`.
    granted: bool,
    /// All sessions of the host's clients, the current one last.
    sessions: Vec<(i64, ClientId)>,
}

impl Controls {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pauses the process.
    pub(crate) fn freeze(&self) {
        self.lock().frozen = true;
    }

    /// Resumes the process.
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

    /// Ready unless the process is paused.
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

    /// Polls `future` only while the process is not paused.
    pub(crate) async fn gate<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        std::future::poll_fn(|cx| match self.poll_running(cx) {
            Poll::Ready(()) => Pin::as_mut(&mut future).poll(cx),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// Notes that the process dies now: handles that it drops from now on record nothing.
    pub(crate) fn dies(&self) {
        self.lock().dying = true;
    }

    pub(crate) fn is_dying(&self) -> bool {
        self.lock().dying
    }

    /// Sets whether the network loses messages to `server`, so that connection attempts are never answered.
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

    /// Adds a trap, which waits for a request.
    pub(crate) fn arm(&self, trap: Trap) {
        self.lock().traps.push(trap);
    }

    pub(crate) fn disarm(&self) {
        self.lock().traps.clear();
    }

    /// Returns the effect of the traps on a request; `None` stands for the request that opens or resumes a
    /// session.
    pub(crate) fn spring(&self, request: Option<&Request>) -> Option<Effect> {
        let traps = &mut self.lock().traps;
        let sprung = traps.iter_mut().position(|trap| trap.meets(request))?;
        Some(traps.swap_remove(sprung).effect())
    }

    /// Returns true if the link must be reset instead of delivering an event that follows another one
    /// directly.
    pub(crate) fn springs_at_next_event(&self) -> bool {
        let traps = &mut self.lock().traps;
        let sprung = traps.iter_mut().position(Trap::meets_next_event);
        sprung.map(|index| traps.swap_remove(index)).is_some()
    }

    /// Notes that something was granted to the client.
    pub(crate) fn granted(&self) {
        self.lock().granted = true;
    }

    /// Returns whether something was granted since the last call.
    pub(crate) fn take_granted(&self) -> bool {
        std::mem::take(&mut self.lock().granted)
    }

    /// Notes that a client has opened or resumed this session.
    pub(crate) fn attached(&self, session: i64, client: ClientId) {
        let sessions = &mut self.lock().sessions;
        // A client may resume an earlier session once more to end it.
        if !sessions.contains(&(session, client)) {
            sessions.push((session, client));
        }
    }

    /// The latest session of a client.
    pub(crate) fn session(&self) -> Option<i64> {
        self.lock().sessions.last().map(|(session, _)| *session)
    }

    /// All sessions so far, each with its client.
    pub(crate) fn sessions(&self) -> Vec<(i64, ClientId)> {
        self.lock().sessions.clone()
    }

    /// Prepares the controls for a new process on the host.
    pub(crate) fn reborn(&self) {
        let mut inner = self.lock();
        inner.wakers.clear();
        inner.traps.clear();
        (inner.frozen, inner.dying) = (false, false);
    }
}
