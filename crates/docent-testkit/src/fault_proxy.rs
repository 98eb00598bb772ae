use crate::proxy::{Direction, On, Proxy, Rule};
use crate::{Armed, ExpireError, Operation};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{ToSocketAddrs, lookup_host};

/// Proxy on loopback between clients and one server, which breaks their links in the ways in which networks
/// do.
///
/// Give one client its own proxy, and its link alone is broken. A fault at a request, such as
/// [`swallow_reply`](Self::swallow_reply), happens once; states such as [`black_hole`](Self::black_hole) last
/// until [`heal`](Self::heal). Links with TLS are passed on, and can be delayed, silenced and cut; what is in
/// them cannot be read, so that no request is found and no session is known.
///
/// At most 64 MiB wait in each direction of a link, then nothing more is read. Beside the ids and passwords
/// of the sessions, nothing is kept of what went through.
///
/// # On drop
/// It listens no more and closes all its links.
///
/// # Examples
/// The reply of a create is lost, and the lock is acquired all the same:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use docent::{Client, Mutex, server::Server};
/// use docent::testkit::{FaultProxy, Operation};
///
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
    /// Listens on a free loopback port for clients of `server`, which need not run yet.
    ///
    /// # Errors
    /// When the server's name has no address, or no port is free.
    ///
    /// # Cancel safety
    /// This function is cancel safe.
    pub async fn start(server: impl ToSocketAddrs) -> io::Result<Self> {
        let address = lookup_host(server).await?.next().ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { proxy: Proxy::start_untraced(address).await? })
    }

    /// The address for clients: `host:port`.
    pub fn connect_string(&self) -> String {
        self.proxy.connect_string()
    }

    /// The address it listens on. It stays the same over [`cut`](Self::cut) and [`heal`](Self::heal).
    pub fn address(&self) -> SocketAddr {
        self.proxy.address()
    }

    /// Swallows the reply to the next request that is `operation` on the node `path` or one below it: the
    /// server applies it, the client hears nothing more of it, and the link stays. The client gives the link
    /// up once its read timeout is over.
    ///
    /// Paths are the server's, with the client's namespace.
    pub fn swallow_reply(&self, operation: Operation, path: &str) -> Armed {
        self.proxy.add(below(operation, path).swallow_reply())
    }

    /// Resets the link in place of the reply to the next such request, as
    /// [`swallow_reply`](Self::swallow_reply) finds it: the server applies it, and the client cannot know.
    pub fn break_after(&self, operation: Operation, path: &str) -> Armed {
        self.proxy.add(below(operation, path).reset_after())
    }

    /// Resets the link in place of the next such request, as [`swallow_reply`](Self::swallow_reply) finds it:
    /// the server does not get it, and the client cannot know.
    pub fn break_before(&self, operation: Operation, path: &str) -> Armed {
        self.proxy.add(below(operation, path).reset_before())
    }

    /// As [`break_after`](Self::break_after), and new links are reset, too, until [`heal`](Self::heal).
    pub fn cut_after(&self, operation: Operation, path: &str) -> Armed {
        self.proxy.add(below(operation, path).cut_after())
    }

    /// Delays all that comes in from now on, each way by `delay`, without reordering it.
    pub fn delay(&self, delay: Duration) {
        self.proxy.set_delay(Direction::ToServer, delay);
        self.proxy.set_delay(Direction::ToClient, delay);
    }

    /// Swallows everything in both directions. Links stay open, and new ones can be made but lead nowhere.
    pub fn black_hole(&self) {
        self.proxy.blackhole();
    }

    /// Resets the links there are. New ones pass. The links are gone when this returns.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the links are closed all the same.
    pub async fn reset(&self) {
        self.proxy.reset().await;
    }

    /// Resets all links and refuses new ones until [`heal`](Self::heal). The links are gone when this
    /// returns.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the links are closed all the same.
    pub async fn cut(&self) {
        self.proxy.cut().await;
    }

    /// Ends black hole, cut and delay. What was swallowed stays lost, and faults that wait for a request go
    /// on waiting.
    ///
    /// # Errors
    /// When another process has taken the port meanwhile.
    ///
    /// # Cancel safety
    /// This method is cancel safe: heal again.
    pub async fn heal(&self) -> io::Result<()> {
        self.proxy.heal().await
    }

    /// Ends a session that was opened or attached to through this proxy, as expiry does: its ephemeral nodes
    /// are gone when this returns. It works on any server, and past the proxy's own faults.
    ///
    /// # Errors
    /// When the session did not come through this proxy, or the server cannot be reached or does not end it
    /// within 30 s.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the session may have ended, or live on for up to 10 s.
    pub async fn expire(&self, session_id: i64) -> Result<(), ExpireError> {
        // On the heap: it is a whole session, and stands in the futures of whoever calls it.
        Box::pin(self.proxy.expire_session(session_id)).await
    }
}

impl FaultProxy {
    /// Ends all sessions that came through.
    pub(crate) async fn expire_all(&self) -> Result<(), ExpireError> {
        for session in self.proxy.sessions().ids() {
            match self.expire(session).await {
                // One that has ended before.
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

/// The first request of a kind about a node at `path` or below it.
fn below(operation: Operation, path: &str) -> On {
    let path = path.to_owned();
    Rule::on_any().when(move |request| operation.is_meant(&path, request))
}
