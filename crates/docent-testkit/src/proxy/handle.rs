use super::expire::{ExpireError, Sessions};
use super::lane::Flow;
use super::link::Link;
use super::rule::Rule;
use super::state::{State, Trace};
use super::trace::{Direction, Traced};
use crate::net::{NetListener, Place, reset_on_drop};
use docent_server::{Armed, Listener};
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::task::JoinHandle;

/// Time limit of [`Proxy::until`], longer than any wait of a test.
const PATIENCE: Duration = Duration::from_secs(30);

/// A proxy between clients and one server, on loopback or in memory. It decodes the protocol's frames,
/// records each of them, and breaks links according to rules. Frames of one direction are never reordered.
///
/// # On drop
/// The proxy stops listening and closes all its links.
///
/// # Examples
/// ```no_run
/// # async fn run(server: std::net::SocketAddr) -> std::io::Result<()> {
/// use docent_proto::OpCode;
/// use docent_testkit::internals::{Proxy, Rule};
///
/// let proxy = Proxy::start(server).await?;
/// let lost = proxy.add(Rule::on(OpCode::Create2).swallow_reply());
/// // … a client connects to proxy.connect_string() and creates a node …
/// lost.fired().await;
/// proxy.reset().await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Proxy {
    place: Place,
    server: SocketAddr,
    state: Arc<State>,
    links: Arc<Links>,
    listening: AsyncMutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Links {
    opened: AtomicU64,
    open: Mutex<Vec<Link>>,
}

impl Proxy {
    /// Listens on a free loopback port for clients of `server`.
    ///
    /// # Errors
    /// If no port is free.
    pub async fn start(server: SocketAddr) -> io::Result<Self> {
        Self::start_with(server, Sessions::default()).await
    }

    /// Does the same as [`start`](Self::start), on the network of `sessions`, a record that other proxies of
    /// the same server may share.
    ///
    /// # Errors
    /// If no port is free.
    pub async fn start_with(server: SocketAddr, sessions: Sessions) -> io::Result<Self> {
        Self::open(server, State::new(sessions, Trace::Kept)).await
    }

    /// Does the same as [`start`](Self::start), without a trace, so its memory does not grow with the frames.
    pub(crate) async fn start_untraced(server: SocketAddr) -> io::Result<Self> {
        Self::open(server, State::new(Sessions::default(), Trace::Dropped)).await
    }

    async fn open(server: SocketAddr, state: State) -> io::Result<Self> {
        let proxy = Self {
            place: state.sessions.net().claim()?,
            server,
            state: Arc::new(state),
            links: Arc::default(),
            listening: AsyncMutex::default(),
        };
        proxy.listen().await?;
        Ok(proxy)
    }

    /// Returns the address for clients: `host:port`.
    pub fn connect_string(&self) -> String {
        self.place.address().to_string()
    }

    /// Returns the address that the proxy listens on. [`cut`](Self::cut) and [`heal`](Self::heal) do not
    /// change it.
    pub fn address(&self) -> SocketAddr {
        self.place.address()
    }

    /// Sets the flow of the frames of one direction, from now on and for all links.
    pub fn set_flow(&self, direction: Direction, flow: Flow) {
        self.state.settings(direction).send_modify(|settings| settings.flow = flow);
    }

    /// Delays the frames of one direction that arrive from now on, without reordering them.
    pub fn set_delay(&self, direction: Direction, delay: Duration) {
        self.state.settings(direction).send_modify(|settings| settings.delay = delay);
    }

    /// Limits the bytes per second of one direction, on each link; `None` for no limit. With a limit, frames
    /// arrive in pieces.
    pub fn set_throttle(&self, direction: Direction, bytes_per_second: Option<NonZeroU32>) {
        self.state.settings(direction).send_modify(|settings| settings.bytes_per_second = bytes_per_second);
    }

    /// Caps the session timeout that clients request at `timeout`; `None` forwards the clients' own values.
    /// The server then grants what a server with a lower maximum would grant, even to a session that had a
    /// longer timeout before.
    pub fn set_longest_timeout(&self, timeout: Option<Duration>) {
        *self.state.longest_timeout.lock().unwrap_or_else(PoisonError::into_inner) = timeout;
    }

    /// Swallows everything in both directions. Links stay open, and new links can be opened but never get an
    /// answer.
    pub fn blackhole(&self) {
        self.set_flow(Direction::ToServer, Flow::Swallow);
        self.set_flow(Direction::ToClient, Flow::Swallow);
    }

    /// Resets both directions to passing frames without delay or limit, and accepts new links again. Rules
    /// stay, and so does the [longest timeout](Self::set_longest_timeout).
    ///
    /// # Errors
    /// If another process has taken the port in the meantime.
    pub async fn heal(&self) -> io::Result<()> {
        for direction in [Direction::ToServer, Direction::ToClient] {
            self.state.settings(direction).send_replace(super::state::Settings::default());
        }
        self.state.refuses.store(false, Ordering::SeqCst);
        self.listen().await
    }

    /// Resets all links, refuses new ones until [`heal`](Self::heal), and waits until the links are closed.
    pub async fn cut(&self) {
        if let Some(listening) = self.listening.lock().await.take() {
            listening.abort();
            let _ = listening.await;
        }
        self.reset().await;
    }

    /// Resets the open links, and waits until they are closed. New links pass.
    pub async fn reset(&self) {
        let links = std::mem::take(&mut *self.links.open());
        for link in links {
            link.reset().await;
        }
    }

    /// Adds a rule. If several rules match the same request, the one that was added first acts.
    pub fn add(&self, rule: Rule) -> Armed {
        let armed = rule.armed();
        self.state.add(rule);
        armed
    }

    /// Passes `count` events from now on, counted over all links, and resets the link in place of the next
    /// event. For example, this can break a link between two events of one transaction. A further call
    /// replaces an earlier one.
    pub fn reset_after_events(&self, count: usize) -> Armed {
        let fired = watch::Sender::new(false);
        let armed = Armed::new(&fired);
        self.state.reset_after_events(count, fired);
        armed
    }

    /// Returns all frames that have passed through so far.
    pub fn trace(&self) -> Vec<Traced> {
        self.state.trace().borrow().clone()
    }

    /// Waits until the trace meets `condition`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    ///
    /// # Panics
    /// If the trace does not meet the condition within 30 s.
    pub async fn until(&self, mut condition: impl FnMut(&[Traced]) -> bool) {
        let mut trace = self.state.trace();
        let met = tokio::time::timeout(PATIENCE, trace.wait_for(|trace| condition(trace))).await.is_ok();
        assert!(met, "the trace did not meet the condition: {:#?}", self.trace());
    }

    /// Returns the sessions that were opened or attached through this proxy, or through others with the same
    /// record.
    pub fn sessions(&self) -> &Sessions {
        &self.state.sessions
    }

    /// Ends a session as an expiry does, bypassing the proxy's own faults. Waits until the session has ended.
    ///
    /// # Errors
    /// If the session did not come through this proxy, or the server is unreachable.
    pub async fn expire_session(&self, session_id: i64) -> Result<(), ExpireError> {
        self.state.sessions.expire(session_id, self.server).await
    }

    async fn listen(&self) -> io::Result<()> {
        let mut listening = self.listening.lock().await;
        if listening.is_none() {
            let mut listener = self.place.listen().await?;
            let (server, state, links) = (self.server, Arc::clone(&self.state), Arc::clone(&self.links));
            *listening =
                Some(tokio::spawn(async move { accept(&mut listener, server, &state, &links).await }));
        }
        Ok(())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(listening) = self.listening.get_mut().take() {
            listening.abort();
        }
        self.links.open().clear();
    }
}

impl Links {
    fn open(&self) -> MutexGuard<'_, Vec<Link>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(listener: &mut NetListener, server: SocketAddr, state: &Arc<State>, links: &Links) {
    loop {
        // An error concerns the one connection that was about to be accepted, not the listener.
        let Ok((client, _)) = listener.accept().await else { continue };
        if state.refuses.load(Ordering::SeqCst) {
            reset_on_drop(&client);
            continue;
        }
        let link =
            Link::open(links.opened.fetch_add(1, Ordering::Relaxed), client, server, Arc::clone(state));
        let mut open = links.open();
        open.retain(|link| !link.has_ended());
        open.push(link);
    }
}
