//! Free loopback ports that stay free while a server is down.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// Below the range from which systems take the ports of outgoing connections. A port from that range could be taken
/// while its server is down for a restart, and a client that dials it could even connect to itself.
const RANGE: std::ops::Range<u16> = 15_000..31_000;
const ATTEMPTS: usize = 200;

/// A loopback address that nothing listens on.
pub(crate) fn free_address() -> io::Result<SocketAddr> {
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    for _ in 0..ATTEMPTS {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, random_port()));
        match TcpListener::bind(address) {
            Ok(_) => return Ok(address),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn random_port() -> u16 {
    let random = RandomState::new().hash_one(std::process::id());
    let span = u64::from(RANGE.end - RANGE.start);
    RANGE.start + u16::try_from(random % span).expect("the remainder is below the span, which fits")
}
