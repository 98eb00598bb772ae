//! Loopback ports that stay reserved while nothing listens on them.

use docent_server::{Bind, Listening, Server, StartError, TcpBind};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Range of ports that are claimed. Most systems choose the ports of outgoing connections above this range,
/// so a claimed port conflicts with none of them.
const RANGE: std::ops::Range<u16> = 15_000..31_000;
const ATTEMPTS: usize = 200;

/// A TCP port on loopback that no other test and no outgoing connection can take, neither before its server
/// listens nor while the server is down. In the meantime, connections to it are refused. The server may be
/// another process.
///
/// The claim is a UDP socket with the same port number. It is exclusive among processes, does not disturb the
/// server, and ends with the process in any case.
///
/// A process reuses a port only after it has used all others, because clients of an earlier server may still
/// try to connect.
///
/// # On drop
/// Others may take the port once no server listens on it.
///
/// # Examples
/// A service starts before its server does:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use docent_core::Client;
/// # use docent_testkit::Port;
/// let port = Port::claim()?;
/// let client = Client::builder(port.connect_string()).build()?;
/// let server = port.start_server().await?;
/// client.exists("/").await?; // it has waited for the server
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Port {
    address: SocketAddr,
    bind: TcpBind,
    _claim: UdpSocket,
}

impl Port {
    /// Claims a port between 15000 and 30999 that nothing listens on.
    ///
    /// # Errors
    /// If no free port was found.
    pub fn claim() -> io::Result<Self> {
        let mut last = io::Error::from(io::ErrorKind::AddrInUse);
        for _ in 0..ATTEMPTS {
            match Self::claim_number(next_number()) {
                Ok(port) => return Ok(port),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn claim_number(number: u16) -> io::Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, number));
        let claim = UdpSocket::bind(address)?;
        // A process that does not use claims may listen on the port.
        Ok(Self { address, bind: TcpBind::keep(address)?, _claim: claim })
    }

    /// Returns the address of a server on this port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address for clients: `host:port`.
    pub fn connect_string(&self) -> String {
        self.address.to_string()
    }

    /// Starts an embedded server with default settings on this port. For other settings, use
    /// [`Server::builder`] with [`address`](Self::address).
    ///
    /// # Errors
    /// If another server listens on the port.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn start_server(&self) -> Result<Server, StartError> {
        Box::pin(Server::builder().port(self.address.port()).start()).await
    }

    /// Listens on the port until the returned listener is dropped.
    ///
    /// # Errors
    /// If another process listens on the port.
    #[doc(hidden)]
    pub async fn listen(&self) -> io::Result<Listening> {
        self.bind.bind(self.address).await
    }
}

/// Returns the next port number. Each process starts at a random one, and uses all of them before it repeats
/// one. Successive numbers are not adjacent, because other processes may have taken many adjacent ports.
fn next_number() -> u16 {
    /// Coprime to the number of ports.
    const STEP: u64 = 7_919;
    static NEXT: LazyLock<AtomicU64> =
        LazyLock::new(|| AtomicU64::new(RandomState::new().hash_one(std::process::id()) >> 1));
    let span = u64::from(RANGE.end - RANGE.start);
    let offset = NEXT.fetch_add(STEP, Ordering::Relaxed) % span;
    RANGE.start + u16::try_from(offset).expect("the remainder is below the span, which fits")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_claimed_port_is_exclusive_although_nothing_listens_on_it() {
        let port = Port::claim().unwrap();
        let number = port.address().port();
        assert_eq!(Port::claim_number(number).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        let listener = TcpListener::bind(port.address()).unwrap();
        drop(port);
        assert_eq!(Port::claim_number(number).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(listener);
    }

    #[test]
    fn a_port_is_not_taken_again_soon() {
        let numbers: Vec<_> = (0..500).map(|_| Port::claim().unwrap().address().port()).collect();
        assert_eq!(numbers.iter().collect::<std::collections::HashSet<_>>().len(), numbers.len());
    }

    #[test]
    fn outgoing_connections_take_no_claimed_port() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        // For one destination, the system assigns ports in sequence and skips some.
        let first = connect().local_addr().unwrap().port();
        let claims: Vec<_> =
            (1..150).filter_map(|n| Port::claim_number(first.checked_add(2 * n)?).ok()).collect();
        assert!(!claims.is_empty());
        let connections: Vec<_> = (0..60).map(|_| connect()).collect();
        for connection in &connections {
            let taken = connection.local_addr().unwrap();
            assert!(claims.iter().all(|port| port.address() != taken), "{taken} was claimed");
        }
    }
}
