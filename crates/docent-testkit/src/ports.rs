//! Loopback ports that stay ours while nothing listens on them.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

/// Below the range from which systems take the ports of outgoing connections. A port from that range could be taken
/// while its server is down for a restart, and a client that dials it could even connect to itself.
const RANGE: std::ops::Range<u16> = 15_000..31_000;
const ATTEMPTS: usize = 200;

/// A loopback port for TCP that no other test takes: neither before its server listens, nor while that is down.
///
/// A socket for UDP with the same number stands for it. That is exclusive between processes too, takes nothing away from
/// the server, and goes with the process however that ends.
///
/// # On drop
/// Others may take it.
#[derive(Debug)]
pub struct Port {
    address: SocketAddr,
    _claim: UdpSocket,
}

impl Port {
    /// Takes a port that nothing listens on.
    ///
    /// # Errors
    /// When no free one was found.
    pub fn claim() -> io::Result<Self> {
        let mut last = io::Error::from(io::ErrorKind::AddrInUse);
        for _ in 0..ATTEMPTS {
            match Self::claim_number(random_number()) {
                Ok(port) => return Ok(port),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn claim_number(number: u16) -> io::Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, number));
        let claim = UdpSocket::bind(address)?;
        // Somebody may listen who knows nothing of claims.
        drop(TcpListener::bind(address)?);
        Ok(Self { address, _claim: claim })
    }

    /// Where a server on this port listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

fn random_number() -> u16 {
    let random = RandomState::new().hash_one(std::process::id());
    let span = u64::from(RANGE.end - RANGE.start);
    RANGE.start + u16::try_from(random % span).expect("the remainder is below the span, which fits")
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
