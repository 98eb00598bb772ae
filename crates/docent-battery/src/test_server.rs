use crate::{
    ExpireError, Net, Port, Proxy, RawClient, RawError, RealServer, ServerOptions, Sessions, StartError,
};
use docent_core::ClientBuilder;
use docent_proto::{Acl, Create, CreateKind, CreateMode, Request};
use docent_server::{Follower, FollowerBuilder};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{env, process};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Environment variable with the address of a real server that several test binaries share. Without it, each
/// binary starts its own.
const SHARED_SERVER: &str = "DOCENT_TEST_SERVER";

/// Limits a process to one real server besides the shared one, because a Java process takes 250 MB.
static OWN_REAL_SERVER: Semaphore = Semaphore::const_new(1);
static ROOTS: AtomicU64 = AtomicU64::new(1);
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// A server for one test, behind a proxy, with a path of the test's own. Created by
/// [`Backend`](crate::Backend).
///
/// # On drop
///
/// The proxy and the server stop, unless the server is shared.
#[derive(Debug)]
pub struct TestServer {
    // Fields are dropped in this order: clients lose the proxy first.
    front: Proxy,
    server: Server,
    net: Net,
    own: bool,
    root: String,
}

#[derive(Debug)]
enum Server {
    Embedded { server: Box<docent_server::Server>, _port: Option<Port> },
    Shared(SocketAddr),
    Own { real: RealServer, _permit: SemaphorePermit<'static> },
}

impl TestServer {
    pub(crate) async fn embedded(options: &ServerOptions, own: bool, net: Net) -> Self {
        let builder = docent_server::Server::builder();
        let builder = match &options.super_digest {
            Some(digest) => builder.super_digest(digest),
            None => builder,
        };
        let builder = builder
            .tick(options.tick)
            .dialect(options.dialect)
            .session_timeouts(options.min_session_timeout, options.max_session_timeout)
            .container_check(options.container_check_interval)
            .zxid_in_events(options.zxid_in_events)
            .ttl_nodes(options.extended_types);
        let users = options.sasl_users.iter();
        let builder = users.fold(builder, |builder, (user, password)| builder.sasl_user(user, password));
        let builder = if options.require_sasl { builder.require_sasl() } else { builder };
        let (builder, port) = match &net {
            Net::Loopback => {
                let port = Port::claim().expect("a port is free on loopback");
                (builder.port(port.address().port()), Some(port))
            }
            Net::Memory(_) => (builder, None),
        };
        let server = builder.start_on(net.clone()).await;
        let server = Box::new(server.expect("the embedded server starts on a free port"));
        Self::new(Server::Embedded { server, _port: port }, own, net, !options.require_sasl).await
    }

    pub(crate) async fn shared() -> Self {
        let address = match env::var(SHARED_SERVER) {
            Ok(address) => address.parse().unwrap_or_else(|_| {
                panic!("{SHARED_SERVER} is {address:?}, but must be an IP address with a port")
            }),
            Err(_) => started(RealServer::shared().await).address(),
        };
        Self::new(Server::Shared(address), false, Net::Loopback, true).await
    }

    pub(crate) async fn real(options: ServerOptions) -> Self {
        let permit = OWN_REAL_SERVER.acquire().await.expect("the semaphore is never closed");
        let is_open = !options.require_sasl;
        let real = started(RealServer::start_with(options).await);
        Self::new(Server::Own { real, _permit: permit }, true, Net::Loopback, is_open).await
    }

    /// `is_open` is false if the server accepts no client without authentication. The test's own path then
    /// does not exist.
    async fn new(server: Server, own: bool, net: Net, is_open: bool) -> Self {
        let front = Proxy::start_with(server.address(), Sessions::on(net.clone()))
            .await
            .expect("a port is free on loopback");
        // Other processes may use the server as well.
        let root = format!("/test-{}{:06}", process::id(), ROOTS.fetch_add(1, Ordering::Relaxed));
        let server = Self { front, server, net, own, root };
        if is_open {
            server.make_root().await;
        }
        server
    }

    async fn make_root(&self) {
        let mut client = self.client().await;
        let mode = CreateMode::Persistent;
        // Every server knows this kind.
        let create = Create {
            kind: CreateKind::Plain,
            ..Create::new(self.root.clone(), Vec::new().into(), Acl::open(), mode, 0)
        };
        client.call(Request::Create(create)).await.expect("the test's own path does not exist yet");
        client.close().await.expect("the server closes a session that was just opened");
    }

    /// The address for clients, `host:port` of the [front](Self::front) proxy.
    pub fn connect_string(&self) -> String {
        self.front.connect_string()
    }

    /// The proxy at [`connect_string`](Self::connect_string). It records all sessions, so any of them can be
    /// [ended](Self::expire).
    pub fn front(&self) -> &Proxy {
        &self.front
    }

    /// Starts another proxy in front of the server, for a client whose link is to be broken separately.
    ///
    /// # Panics
    ///
    /// Panics if no port is free on loopback.
    pub async fn proxy(&self) -> Proxy {
        self.proxy_of(self.server.address()).await
    }

    /// Does the same as [`proxy`](Self::proxy), in front of another server on the same network.
    ///
    /// # Panics
    ///
    /// Panics if no port is free on loopback.
    pub async fn proxy_of(&self, server: SocketAddr) -> Proxy {
        let sessions = self.front.sessions().clone();
        Proxy::start_with(server, sessions).await.expect("a port is free on loopback")
    }

    /// The address of the server itself, which bypasses all proxies.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// An existing path that no other test uses.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// The path of `name` below [`root`](Self::root).
    pub fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.root)
    }

    /// Settings of a client that connects to `connect_string` on the server's network.
    pub fn client_builder(&self, connect_string: impl AsRef<str>) -> ClientBuilder {
        self.net.client_builder(connect_string)
    }

    /// The network on which the server listens.
    pub fn net(&self) -> &Net {
        &self.net
    }

    /// Opens a raw client with its own session, which bypasses all proxies.
    ///
    /// # Panics
    ///
    /// Panics if the server does not answer.
    pub async fn client(&self) -> RawClient {
        RawClient::open_on(&self.net, self.server.address(), SESSION_TIMEOUT)
            .await
            .expect("a running server opens a session")
    }

    /// Ends a session as expiry does. The session no longer exists when this method returns.
    ///
    /// # Errors
    ///
    /// Fails if the session came through no proxy of this server, or if the server cannot be reached.
    pub async fn expire(&self, session_id: i64) -> Result<(), ExpireError> {
        match self.as_embedded() {
            // No other link can attach to the session and close it.
            Some(server) if !self.restores_sessions() => {
                server.expire(session_id);
                Ok(())
            }
            _ => self.front.expire_session(session_id).await,
        }
    }

    /// Returns whether a session survives the loss of its link.
    pub fn restores_sessions(&self) -> bool {
        self.as_embedded().is_none_or(|server| server.dialect().restores_sessions())
    }

    /// Returns whether the server has ended a session. A server that restores sessions is asked as a client
    /// would, so the session must have come through a proxy of this server.
    ///
    /// # Errors
    ///
    /// If the server cannot be asked.
    pub async fn has_ended(&self, session_id: i64) -> Result<bool, RawError> {
        match self.as_embedded() {
            Some(server) if !self.restores_sessions() => Ok(server.session(session_id).is_none()),
            _ => match self.front.sessions().attach(session_id, self.server.address()).await {
                Err(RawError::Gone(_)) => Ok(true),
                other => other.map(|_| false),
            },
        }
    }

    /// Stops the server. Its port, nodes and sessions are kept for [`start_again`](Self::start_again).
    ///
    /// # Panics
    ///
    /// Panics if the server came from [`Backend::start`](crate::Backend::start), because that server may be
    /// shared.
    pub async fn stop(&self) {
        self.assert_own();
        match &self.server {
            Server::Embedded { server, .. } => {
                server.stop_listening().await.expect("the server's runtime is this test's, which runs");
            }
            Server::Own { real, .. } => real.stop(),
            Server::Shared(_) => {}
        }
    }

    /// Starts a stopped server on the same port and waits until it serves. Each session has its full timeout
    /// again.
    ///
    /// # Panics
    ///
    /// As [`stop`](Self::stop), and if the server does not start.
    pub async fn start_again(&self) {
        self.assert_own();
        match &self.server {
            Server::Embedded { server, .. } => server.listen_again().await.expect("the port is still free"),
            Server::Own { real, .. } => started(real.start_again().await),
            Server::Shared(_) => {}
        }
    }

    /// The embedded server, for features that only the embedded server has.
    pub fn as_embedded(&self) -> Option<&docent_server::Server> {
        match &self.server {
            Server::Embedded { server, .. } => Some(server),
            Server::Shared(_) | Server::Own { .. } => None,
        }
    }

    /// Starts a follower of the embedded server, on the same network.
    ///
    /// # Panics
    ///
    /// Panics if the server is a real one, or if the follower does not start.
    pub async fn follower(&self, set_up: impl FnOnce(FollowerBuilder) -> FollowerBuilder) -> Follower {
        let server = self.as_embedded().expect("only the embedded server has followers that can be cut off");
        let started = set_up(server.follower()).start_on(self.net.clone()).await;
        started.expect("the follower starts on a free port")
    }

    /// The test's own real server, for features that only a real server has.
    pub fn as_real(&self) -> Option<&RealServer> {
        match &self.server {
            Server::Embedded { .. } | Server::Shared(_) => None,
            Server::Own { real, .. } => Some(real),
        }
    }

    fn assert_own(&self) {
        assert!(self.own, "this server may be shared; a test that stops its server must use start_own");
    }
}

impl Server {
    fn address(&self) -> SocketAddr {
        match self {
            Self::Embedded { server, .. } => server.local_addr(),
            Self::Shared(address) => *address,
            Self::Own { real, .. } => real.address(),
        }
    }
}

/// Returns the server. A test that needs a real server fails without one, and the message names what to
/// install.
fn started<T>(result: Result<T, StartError>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}
