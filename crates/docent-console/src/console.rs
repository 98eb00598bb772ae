use crate::access::{Access, Gate};
use crate::pages::Pen;
use crate::web::{self, LastWalk};
use crate::world::{Rules, World, follow};
use axum::Router;
use docent::inspect::Inspector;
use docent::{Client, Error};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// Age from which on a holder, or an item at the head of a queue, is a finding, unless set otherwise.
const OLD: Duration = Duration::from_secs(10 * 60);

/// Live web page of the recipes below a path.
///
/// Cheap to clone. All browsers share one walk of the tree and one watch at the servers, and so do all
/// clones.
///
/// # Guarantees
/// - Nothing is written to ZooKeeper unless [actions](ConsoleBuilder::allow_actions) are allowed, except for
///   the client's own node by which the servers' clock is read.
/// - Every action asks once, names the node that it changes, and fails if that node was changed or replaced
///   after the question was drawn. There is one exception: nodes whose names are used again, which are
///   instances, claims of kazoo's queues and permits of kazoo's semaphores. If such a node is deleted and
///   created again between the last read and the write, at most two seconds later, the new node is changed.
///
/// # On drop
/// Once the last clone and the last router are dropped, the console stops following the tree. The client is
/// not closed.
#[derive(Clone)]
pub struct Console {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) client: Client,
    pub(crate) inspector: Inspector,
    pub(crate) world: Arc<World>,
    pub(crate) settings: Settings,
    pub(crate) sessions: LastWalk,
    gate: Gate,
    /// Permits of requests that read from ZooKeeper.
    reads: Semaphore,
    /// Number of open event streams.
    pub(crate) streams: AtomicUsize,
}

/// Settings of a console that pages depend on.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) base: String,
    pub(crate) root: String,
    allows_actions: bool,
    shows_data: bool,
}

/// Settings of a [`Console`].
#[must_use = "a builder does nothing until `build` is called"]
pub struct ConsoleBuilder {
    client: Client,
    settings: Settings,
    access: Access,
    hosts: Vec<String>,
    has_secure_cookies: bool,
    rules: Rules,
}

impl Console {
    /// Returns a builder for a console of the recipes that `client` can read.
    pub fn builder(client: &Client) -> ConsoleBuilder {
        let settings =
            Settings { base: String::new(), root: "/".to_owned(), allows_actions: false, shows_data: true };
        ConsoleBuilder {
            client: client.clone(),
            settings,
            access: Access::open(),
            hosts: Vec::new(),
            has_secure_cookies: false,
            rules: Rules { holder_age: OLD, head_age: OLD, shows_data: true },
        }
    }

    /// Returns the routes of the console. Serve them with
    /// `into_make_service_with_connect_info::<SocketAddr>()`, so that the log of actions has the address of
    /// who did it.
    pub fn router(&self) -> Router {
        self.inner.gate.layer(web::router(self))
    }
}

impl Inner {
    /// Returns the pen for a complete page.
    pub(crate) fn pen(&self) -> Pen<'_> {
        Pen { now: Some(self.world.now()), ..self.pen_of_parts() }
    }

    /// Returns the pen for parts of a page that are sent again.
    pub(crate) fn pen_of_parts(&self) -> Pen<'_> {
        let Settings { base, allows_actions, shows_data, .. } = &self.settings;
        Pen { base, now: None, allows_actions: *allows_actions, shows_data: *shows_data }
    }

    /// Returns true if the path is the root of the console or below it.
    pub(crate) fn is_below_root(&self, path: &str) -> bool {
        let rest = path.strip_prefix(self.settings.root.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Waits for the permit of a read from ZooKeeper. Returns `None` if there is none in time: the servers
    /// may be unreachable, and more requests would only wait, too.
    pub(crate) async fn read_permit(&self) -> Option<SemaphorePermit<'_>> {
        timeout(PERMIT_PATIENCE, self.reads.acquire()).await.ok()?.ok()
    }

    /// Counts an event stream while the returned value exists. Returns `None` if there are too many.
    pub(crate) fn open_stream(self: &Arc<Self>) -> Option<OpenStream> {
        let open = OpenStream(Arc::clone(self));
        (self.streams.fetch_add(1, Ordering::Relaxed) < MAX_STREAMS).then_some(open)
    }
}

/// Maximum number of concurrent requests that read from ZooKeeper. Pages of recipes read nothing.
const MAX_READS: usize = 8;

/// Longest wait for one of these.
const PERMIT_PATIENCE: Duration = Duration::from_secs(2);

/// Maximum number of event streams.
const MAX_STREAMS: usize = 1_000;

/// An event stream that is counted.
pub(crate) struct OpenStream(Arc<Inner>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ConsoleBuilder {
    /// Sets the path of which, with everything below it, recipes are shown; `/` by default. Other paths are
    /// neither shown nor changed.
    pub fn root(mut self, path: impl Into<String>) -> Self {
        self.settings.root = path.into();
        self
    }

    /// Sets the prefix under which a service mounts the router, such as `/console`; none by default.
    pub fn base(mut self, prefix: impl Into<String>) -> Self {
        let prefix = prefix.into();
        let inner = prefix.trim_matches('/');
        self.settings.base = if inner.is_empty() { String::new() } else { format!("/{inner}") };
        self
    }

    /// Allows actions: ask a holder to leave, delete the node of a contender or a claim, disable and enable
    /// an instance, publish an earlier configuration again, put a dead letter back or delete it. Without this
    /// setting each of them is refused.
    pub fn allow_actions(mut self) -> Self {
        self.settings.allows_actions = true;
        self
    }

    /// Never shows data that services have stored: payloads, configuration values, and details of dead
    /// letters. Identities of clients are shown, since they are what a console is about.
    pub fn hide_data(mut self) -> Self {
        (self.settings.shows_data, self.rules.shows_data) = (false, false);
        self
    }

    /// Sets who may use the console; [everybody who reaches it](Access::open) by default.
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Sets the names by which browsers may address the console, besides `localhost` and IP addresses.
    /// Requests with another name are refused, as a page of an attacker might send them.
    pub fn hosts<H: Into<String>>(mut self, names: impl IntoIterator<Item = H>) -> Self {
        self.hosts = names.into_iter().map(Into::into).collect();
        self
    }

    /// Makes browsers send cookies over TLS only.
    pub fn secure_cookies(mut self) -> Self {
        self.has_secure_cookies = true;
        self
    }

    /// Sets the age from which on the holder of a lock is a finding; 10 minutes by default.
    pub fn holder_age(mut self, age: Duration) -> Self {
        self.rules.holder_age = age;
        self
    }

    /// Sets the age from which on the item at the head of a queue is a finding; 10 minutes by default.
    pub fn head_age(mut self, age: Duration) -> Self {
        self.rules.head_age = age;
        self
    }

    /// Creates the console and begins to follow the tree.
    ///
    /// # Errors
    /// `InvalidInput` if the root is not a valid path.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn build(self) -> Result<Console, Error> {
        let Self { client, settings, access, hosts, has_secure_cookies, rules } = self;
        let (inspector, world) = (Inspector::new(&client), Arc::new(World::new(&settings.root, rules)));
        drop(client.watch_exists(&settings.root)?);
        tokio::spawn(follow(
            Arc::downgrade(&world),
            client.clone(),
            inspector.clone(),
            settings.root.clone(),
        ));
        let gate = Gate::new(access, hosts, has_secure_cookies, &settings.base);
        let streams = AtomicUsize::new(0);
        Ok(Console {
            inner: Arc::new(Inner {
                client,
                inspector,
                world,
                settings,
                sessions: LastWalk::default(),
                reads: Semaphore::new(MAX_READS),
                gate,
                streams,
            }),
        })
    }
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").field("settings", &self.inner.settings).finish_non_exhaustive()
    }
}

impl fmt::Debug for ConsoleBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsoleBuilder").field("settings", &self.settings).finish_non_exhaustive()
    }
}
