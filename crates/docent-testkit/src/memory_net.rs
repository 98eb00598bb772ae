use docent_core::{Client, ClientBuilder, Dialled, Io, ServerAddress, TokioClock, Transport};
use docent_server::{Bind, Listener};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{DuplexStream, duplex};
use tokio::sync::mpsc;

/// Maximum number of unread bytes in one direction of a link.
const BUFFER: usize = 64 << 10;
/// Maximum number of links that wait to be accepted.
const BACKLOG: usize = 128;
/// First port that is assigned.
const FIRST_PORT: u16 = 2181;

/// A network in memory for the embedded server, its followers and their clients in one runtime. They can then
/// run under tokio's paused time, in which a minute passes as soon as all tasks wait.
///
/// With real sockets, paused time would advance before the bytes arrive. Clones of a value refer to the same
/// network. Different networks are not connected.
///
/// # On drop
/// Links and listeners live as long as their ends.
///
/// # Examples
/// A session expires without taking real time:
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use docent_locks::Mutex;
/// # use docent_server::Server;
/// # use docent_testkit::MemoryNet;
/// let net = MemoryNet::new();
/// let server = Server::builder().start_on(net.clone()).await?;
/// let follower = server.follower().start_on(net.clone()).await?;
/// let client = net.client(follower.connect_string()).connect().await?;
/// let guard = Mutex::new(&client, "/locks/report")?.acquire().await?;
///
/// follower.cut_off(); // from its leader: no write is acknowledged any more
/// guard.lost().await;
/// assert!(!guard.is_held());
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct MemoryNet {
    listening: Arc<Mutex<Listening>>,
}

type Accepted = (DuplexStream, SocketAddr);

#[derive(Default)]
struct Listening {
    /// Number of ports assigned.
    ports: u16,
    links: HashMap<SocketAddr, mpsc::Sender<Accepted>>,
}

/// A listener of a [`MemoryNet`].
#[derive(Debug)]
pub struct MemoryListener {
    address: SocketAddr,
    links: mpsc::Receiver<Accepted>,
}

impl MemoryNet {
    /// Creates a network without listeners.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a builder for a client on this network that uses tokio's clock, which paused time requires.
    pub fn client(&self, connect_string: impl AsRef<str>) -> ClientBuilder {
        Client::builder(connect_string).transport(self.clone()).clock(TokioClock::new())
    }

    fn listening(&self) -> MutexGuard<'_, Listening> {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Assigns an address to a server that does not listen yet.
    pub(crate) fn claim(&self) -> io::Result<SocketAddr> {
        let port = self.listening().port().ok_or(io::ErrorKind::AddrInUse)?;
        Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }

    /// Listens on `address`. Port 0 is replaced by a free port.
    pub(crate) fn listen(&self, mut address: SocketAddr) -> io::Result<MemoryListener> {
        let mut listening = self.listening();
        if address.port() == 0 {
            address.set_port(listening.port().ok_or(io::ErrorKind::AddrInUse)?);
        }
        if listening.links.get(&address).is_some_and(|links| !links.is_closed()) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let (dials, links) = mpsc::channel(BACKLOG);
        listening.links.insert(address, dials);
        Ok(MemoryListener { address, links })
    }

    pub(crate) fn link(&self, address: SocketAddr) -> io::Result<DuplexStream> {
        let mut listening = self.listening();
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, listening.port().ok_or(io::ErrorKind::AddrInUse)?));
        let links = listening.links.get(&address).ok_or(io::ErrorKind::ConnectionRefused)?;
        let (near, far) = duplex(BUFFER);
        links.try_send((far, peer)).map_err(|_| io::Error::from(io::ErrorKind::ConnectionRefused))?;
        Ok(near)
    }
}

impl Listening {
    /// Assigns the next free port. After the last port, the search continues from the first, because only
    /// listeners must differ.
    fn port(&mut self) -> Option<u16> {
        for _ in FIRST_PORT..=u16::MAX {
            let port = FIRST_PORT.checked_add(self.ports).unwrap_or(FIRST_PORT);
            self.ports = port - FIRST_PORT + 1;
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            if self.links.get(&address).is_none_or(mpsc::Sender::is_closed) {
                return Some(port);
            }
        }
        None
    }
}

impl Bind for MemoryNet {
    type Listener = MemoryListener;

    async fn bind(&self, address: SocketAddr) -> io::Result<MemoryListener> {
        self.listen(address)
    }
}

impl Listener for MemoryListener {
    type Io = DuplexStream;

    async fn accept(&mut self) -> io::Result<Accepted> {
        match self.links.recv().await {
            Some(link) => Ok(link),
            // The network has been dropped, so no client can connect any more.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

impl Transport for MemoryNet {
    fn resolve<'a>(&'a self, server: &'a ServerAddress) -> Dialled<'a, Vec<SocketAddr>> {
        Box::pin(async move {
            let host = match server.host.as_str() {
                "localhost" => Ok(Ipv4Addr::LOCALHOST.into()),
                host => {
                    host.parse().map_err(|_| io::Error::other(format!("{host:?} is neither localhost nor an IP address, and memory networks resolve no other names")))
                }
            };
            Ok(vec![SocketAddr::new(host?, server.port)])
        })
    }

    fn dial<'a>(&'a self, _server: &'a ServerAddress, address: SocketAddr) -> Dialled<'a, Box<dyn Io>> {
        Box::pin(async move { Ok(Box::new(self.link(address)?) as Box<dyn Io>) })
    }
}

impl fmt::Debug for MemoryNet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listening = self.listening();
        let open = listening.links.iter().filter(|(_, links)| !links.is_closed());
        f.debug_struct("MemoryNet")
            .field("listening", &open.map(|(address, _)| address).collect::<Vec<_>>())
            .finish()
    }
}
