//! Loopback ports that stay ours while nothing listens on them.

use docent_server::{Bind, Listening, Server, StartError, TcpBind};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Ports below the range from which systems mostly take those of outgoing connections: a kept port there is
/// in nobody's way.
const RANGE: std::ops::Range<u16> = 15_000..31_000;
const ATTEMPTS: usize = 200;

/// Loopback port for TCP that no other test and no outgoing connection takes: neither before its server
/// listens, nor while that is down. Connections to it are refused then. The server may be another process.
///
/// A socket for UDP with the same number stands for the claim. That is exclusive between processes too, takes
/// nothing away from the server, and goes with the process however that ends.
///
/// A process takes a port again only after all others, because clients of an earlier server may still dial
/// it.
///
/// # On drop
/// Others may take it, once no server listens on it.
///
/// # Examples
/// A service starts before its server does:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use docent::{Client, testkit::Port};
///
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
    /// Takes a port that nothing listens on, of those from 15000 to 30999.
    ///
    /// # Errors
    /// When no free one was found.
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
        // A process that knows nothing of claims may listen there.
        Ok(Self { address, bind: TcpBind::keep(address)?, _claim: claim })
    }

    /// The address of a server on this port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address for clients: `host:port`.
    pub fn connect_string(&self) -> String {
        self.address.to_string()
    }

    /// Starts an embedded server on it, with the defaults. Another one can be had by
    /// [`Server::builder`] and [`address`](Self::address).
    ///
    /// # Errors
    /// When another one listens on it.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn start_server(&self) -> Result<Server, StartError> {
        Box::pin(Server::builder().port(self.address.port()).start()).await
    }

    /// Listens on it, until the returned listener is dropped.
    ///
    /// # Errors
    /// When another one listens on it.
    #[doc(hidden)]
    pub async fn listen(&self) -> io::Result<Listening> {
        self.bind.bind(self.address).await
    }
}

/// The next number: each process begins at a random one, and has them all before one comes again. One does
/// not lie beside the next: others may have taken many in a row.
fn next_number() -> u16 {
    /// Prime to the number of ports.
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
    fn a_claimed_port_is_nobody_elses_though_nothing_listens_on_it() {
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
        // The system takes ports for the same destination one after the other, and leaves some out.
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
