use crate::proxy::{Direction, On, Proxy, Rule};
use crate::{Armed, ExpireError, Operation};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{ToSocketAddrs, lookup_host};

/// A proxy on loopback between clients and one server, which breaks their links as networks do.
///
/// Give each client its own proxy, so that only its link is broken. A fault at a request, such as
/// [`swallow_reply`](Self::swallow_reply), happens once. A state such as [`black_hole`](Self::black_hole)
/// lasts until [`heal`](Self::heal). Links with TLS can be delayed, silenced and cut. However, their contents
/// are encrypted, so no request triggers a fault and no session is known.
///
/// At most 64 MiB wait in each direction of a link; beyond that, nothing more is read. The proxy keeps the
/// ids and passwords of sessions, but no other data.
///
/// # On drop
/// The proxy stops listening and closes all its links.
///
/// # Examples
/// The reply of a create is lost, and the lock is acquired nevertheless:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use docent_core::Client;
/// # use docent_locks::Mutex;
/// # use docent_server::Server;
/// # use docent_testkit::{FaultProxy, Operation};
/// let server = Server::start().await?;
/// let link = FaultProxy::start(server.connect_string()).await?;
/// let client = Client::connect(link.connect_string()).await?;
///
/// let lost = link.break_after(Operation::Create, "/locks/report");
/// let guard = Mutex::new(&client, "/locks/report")?.acquire().await?;
/// assert!(lost.has_fired() && guard.is_held());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct FaultProxy {
    proxy: Proxy,
}

impl FaultProxy {
    /// Listens on a free loopback port for clients of `server`, which need not be running yet.
    ///
    /// # Errors
    /// If the server's name does not resolve to an address, or no port is free.
    ///
    /// # Cancel safety
    /// This function is cancel safe.
    pub async fn start(server: impl ToSocketAddrs) -> io::Result<Self> {
        let address = lookup_host(server).await?.next().ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { proxy: Proxy::start_untraced(address).await? })
    }

    /// Returns the address for clients: `host:port`.
    pub fn connect_string(&self) -> String {
        self.proxy.connect_string()
    }

    /// Returns the address that the proxy listens on. [`cut`](Self::cut) and [`heal`](Self::heal) do not
    /// change it.
    pub fn address(&self) -> SocketAddr {
        self.proxy.address()
    }

    /// Swallows the reply to the next request that is `operation` on the node `path` or on one below it. The
    /// server applies the request, the client receives nothing more for it, and the link stays open. The
    /// client drops the link after its read timeout.
    ///
    /// Paths are the server's paths, which include the client's namespace.
    pub fn swallow_reply(&self, operation: Operation, path: &str) -> Armed {
        self.proxy.add(below(operation, path).swallow_reply())
    }

    /// Resets the link in place of the reply to the next request, selected as by
    /// [`swallow_reply`](Self::swallow_reply). The server applies the request, and the client cannot know the
    /// outcome.
    pub fn break_after(&self, operation: Operation, path: &str) -> Armed {
        self.proxy.add(below(operation, path).reset_after())
    }

    /// Resets the link in place of forwarding the next request, selected as by
    /// [`swallow_reply`](Self::swallow_reply). The server does not receive the request, and the client cannot
    /// know the outcome.
    pub fn break_before(&self, operation: Operation, path: &str) -> Armed {
        self.proxy.add(below(operation, path).reset_before())
    }

    /// Does the same as [`break_after`](Self::break_after), and also resets new links until
    /// [`heal`](Self::heal).
    pub fn cut_after(&self, operation: Operation, path: &str) -> Armed {
        self.proxy.add(below(operation, path).cut_after())
    }

    /// Delays all data that arrives from now on by `delay`, in both directions, without reordering it.
    pub fn delay(&self, delay: Duration) {
        self.proxy.set_delay(Direction::ToServer, delay);
        self.proxy.set_delay(Direction::ToClient, delay);
    }

    /// Swallows everything in both directions. Links stay open, and new links can be opened but never get an
    /// answer.
    pub fn black_hole(&self) {
        self.proxy.blackhole();
    }

    /// Resets the open links, and waits until they are closed. New links pass.
    ///
    /// # Cancel safety
    /// This method is cancel safe. The links are closed in any case.
    pub async fn reset(&self) {
        self.proxy.reset().await;
    }

    /// Resets all links, refuses new ones until [`heal`](Self::heal), and waits until the links are closed.
    ///
    /// # Cancel safety
    /// This method is cancel safe. The links are closed in any case.
    pub async fn cut(&self) {
        self.proxy.cut().await;
    }

    /// Ends a black hole, a cut or a delay. Swallowed data stays lost, and faults that wait for a request
    /// stay armed.
    ///
    /// # Errors
    /// If another process has taken the port in the meantime.
    ///
    /// # Cancel safety
    /// This method is cancel safe. If it is cancelled, call it again to complete the repair.
    pub async fn heal(&self) -> io::Result<()> {
        self.proxy.heal().await
    }

    /// Ends a session that was opened or attached through this proxy, as an expiry does, and waits until its
    /// ephemeral nodes are deleted. It works with any server, and bypasses the proxy's own faults.
    ///
    /// # Errors
    /// If the session did not come through this proxy, the server is unreachable, or the server does not end
    /// the session within 30 s.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the session may have ended, or continue for up to 10 s.
    pub async fn expire(&self, session_id: i64) -> Result<(), ExpireError> {
        // Boxed because the future contains a whole session, and would make the caller's future large.
        Box::pin(self.proxy.expire_session(session_id)).await
    }
}

impl FaultProxy {
    /// Ends all sessions that came through the proxy.
    pub(crate) async fn expire_all(&self) -> Result<(), ExpireError> {
        for session in self.proxy.sessions().ids() {
            match self.expire(session).await {
                // The session has ended before.
                Ok(()) | Err(ExpireError::Unknown(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(crate) fn add(&self, rule: Rule) -> Armed {
        self.proxy.add(rule)
    }
}

/// Selects the first request of a kind about a node at `path` or below it.
fn below(operation: Operation, path: &str) -> On {
    let path = path.to_owned();
    Rule::on_any().when(move |request| operation.is_meant(&path, request))
}
