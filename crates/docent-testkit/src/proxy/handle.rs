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

/// Time limit of [`Proxy::until`], above all waits of a test.
const PATIENCE: Duration = Duration::from_secs(30);

/// A proxy between clients and one server, on loopback or in memory. It reads the protocol's frames, notes
/// each, and breaks links where it is told to. Frames of one direction are never reordered.
///
/// # On drop
/// It listens no more and closes all its links.
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
    /// When no port is free.
    pub async fn start(server: SocketAddr) -> io::Result<Self> {
        Self::start_with(server, Sessions::default()).await
    }

    /// As [`start`](Self::start), on the network of `sessions`, a record that is shared with other proxies of
    /// the same server.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start_with(server: SocketAddr, sessions: Sessions) -> io::Result<Self> {
        Self::open(server, State::new(sessions, Trace::Kept)).await
    }

    /// As [`start`](Self::start), with an empty trace: what it keeps does not grow with the frames.
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

    /// The address for clients: `host:port`.
    pub fn connect_string(&self) -> String {
        self.place.address().to_string()
    }

    /// The address it listens on. It stays the same over [`cut`](Self::cut) and [`heal`](Self::heal).
    pub fn address(&self) -> SocketAddr {
        self.place.address()
    }

    /// Sets the flow of the frames of one direction, from now on and for all links.
    pub fn set_flow(&self, direction: Direction, flow: Flow) {
        self.state.settings(direction).send_modify(|settings| settings.flow = flow);
    }

    /// Delays the frames of one direction that come in from now on, without reordering them.
    pub fn set_delay(&self, direction: Direction, delay: Duration) {
        self.state.settings(direction).send_modify(|settings| settings.delay = delay);
    }

    /// Passes at most so many bytes of one direction in a second, on each link; `None` for all of them at
    /// once. Frames arrive in pieces then.
    pub fn set_throttle(&self, direction: Direction, bytes_per_second: Option<NonZeroU32>) {
        self.state.settings(direction).send_modify(|settings| settings.bytes_per_second = bytes_per_second);
    }

    /// Asks the server for at most `timeout` when a client asks for a longer session timeout, so that it
    /// grants the timeout of a server with a lower limit, also to a session that had more before; `None` to
    /// ask for the clients' own.
    pub fn set_longest_timeout(&self, timeout: Option<Duration>) {
        *self.state.longest_timeout.lock().unwrap_or_else(PoisonError::into_inner) = timeout;
    }

    /// Swallows everything in both directions; connections stay open, and new ones can be made but lead
    /// nowhere.
    pub fn blackhole(&self) {
        self.set_flow(Direction::ToServer, Flow::Swallow);
        self.set_flow(Direction::ToClient, Flow::Swallow);
    }

    /// Passes frames on again in both directions, without delay, at full speed, and takes new links again.
    /// Rules stay, and so does the [longest timeout](Self::set_longest_timeout).
    ///
    /// # Errors
    /// When the port was taken meanwhile.
    pub async fn heal(&self) -> io::Result<()> {
        for direction in [Direction::ToServer, Direction::ToClient] {
            self.state.settings(direction).send_replace(super::state::Settings::default());
        }
        self.state.refuses.store(false, Ordering::SeqCst);
        self.listen().await
    }

    /// Resets all links and refuses new ones until [`heal`](Self::heal). The links are gone when this
    /// returns.
    pub async fn cut(&self) {
        if let Some(listening) = self.listening.lock().await.take() {
            listening.abort();
            let _ = listening.await;
        }
        self.reset().await;
    }

    /// Resets the links there are. New ones pass. The links are gone when this returns.
    pub async fn reset(&self) {
        let links = std::mem::take(&mut *self.links.open());
        for link in links {
            link.reset().await;
        }
    }

    /// Adds a rule. When several would react to the same request, the one added first does.
    pub fn add(&self, rule: Rule) -> Armed {
        let armed = rule.armed();
        self.state.add(rule);
        armed
    }

    /// Lets `count` events pass, counted from now on and over all links, and resets the link in place of the
    /// next one: between two events of one transaction, for instance. Another call takes the place of an
    /// earlier one.
    pub fn reset_after_events(&self, count: usize) -> Armed {
        let fired = watch::Sender::new(false);
        let armed = Armed::new(&fired);
        self.state.reset_after_events(count, fired);
        armed
    }

    /// Everything that went through so far.
    pub fn trace(&self) -> Vec<Traced> {
        self.state.trace().borrow().clone()
    }

    /// Waits until the trace meets `condition`.
    ///
    /// # Panics
    /// When it does not within 30 s.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn until(&self, mut condition: impl FnMut(&[Traced]) -> bool) {
        let mut trace = self.state.trace();
        let met = tokio::time::timeout(PATIENCE, trace.wait_for(|trace| condition(trace))).await.is_ok();
        assert!(met, "the trace did not come to what was waited for: {:#?}", self.trace());
    }

    /// Sessions that were opened or attached to through this proxy, or through others with the same record.
    pub fn sessions(&self) -> &Sessions {
        &self.state.sessions
    }

    /// Ends a session as expiry does, past the proxy's own faults. It is gone when this returns.
    ///
    /// # Errors
    /// When the session did not come through this proxy, or the server cannot be reached.
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
        // A failure is that of the one connection that was about to be made, not of the listener.
        let Ok((client, _)) = listener.accept().await else { continue };
        if state.refuses.load(Ordering::SeqCst) {
            reset_on_drop(&client);
            continue;
        }
        let link =
            Link::open(links.opened.fetch_add(1, Ordering::Relaxed), client, server, Arc::clone(state));
        let mut open = links.open();
        open.retain(|link| !link.is_over());
        open.push(link);
    }
}
