use super::tally::Tally;
use docent_proto::OpCode;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// Relay on loopback between clients and a server that counts requests and bytes.
///
/// # On drop
/// It listens no more and closes all its links.
#[derive(Debug)]
pub(super) struct Relay {
    address: SocketAddr,
    counted: Arc<Mutex<Counts>>,
    listening: JoinHandle<()>,
}

/// Requests by operation, and bytes of both directions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) requests: BTreeMap<i32, u64>,
    pub(super) bytes: u64,
}

impl Counts {
    /// Growth since an earlier look.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let before = |op: &i32| earlier.requests.get(op).copied().unwrap_or_default();
        let requests = self.requests.iter().map(|(op, count)| (*op, count - before(op)));
        Self {
            requests: requests.filter(|(_, count)| *count > 0).collect(),
            bytes: self.bytes - earlier.bytes,
        }
    }

    /// Requests without heartbeats, which come by the clock.
    pub(super) fn total(&self) -> u64 {
        let heartbeat = OpCode::Ping as i32;
        self.requests.iter().filter(|(op, _)| **op != heartbeat).map(|(_, count)| count).sum()
    }
}

impl Relay {
    pub(super) async fn start(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, counted) = (listener.local_addr()?, Arc::default());
        let listening = tokio::spawn(accept(listener, server, Arc::clone(&counted)));
        Ok(Self { address, counted, listening })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Everything that went through so far.
    pub(super) fn counts(&self) -> Counts {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, counted: Arc<Mutex<Counts>>) {
    let mut links = JoinSet::new();
    loop {
        if let Ok((client, _)) = listener.accept().await {
            links.spawn(link(client, server, Arc::clone(&counted)));
        }
        while links.try_join_next().is_some() {}
    }
}

/// Passes bytes on until one side ends.
async fn link(client: TcpStream, server: SocketAddr, counted: Arc<Mutex<Counts>>) -> io::Result<()> {
    let server = TcpStream::connect(server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    tokio::select! {
        ended = pass(from_client, to_server, &counted, Some(Tally::default())) => ended,
        ended = pass(from_server, to_client, &counted, None) => ended,
    }
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    counted: &Mutex<Counts>,
    mut tally: Option<Tally>,
) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        let bytes = &buffer[..length];
        {
            let mut counts = counted.lock().unwrap_or_else(PoisonError::into_inner);
            counts.bytes += length as u64;
            let requests = tally.as_mut().map(|tally| tally.read(bytes)).unwrap_or_default();
            for op in requests {
                *counts.requests.entry(op).or_default() += 1;
            }
        }
        to.write_all(bytes).await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(requests: &[(i32, u64)], bytes: u64) -> Counts {
        Counts { requests: requests.iter().copied().collect(), bytes }
    }

    #[test]
    fn what_came_before_does_not_count() {
        let grown = counts(&[(1, 5), (2, 3), (4, 9)], 700).since(&counts(&[(1, 5), (2, 1)], 200));
        assert_eq!(grown, counts(&[(2, 2), (4, 9)], 500));
    }

    #[test]
    fn heartbeats_are_no_requests_of_an_operation() {
        assert_eq!(counts(&[(1, 5), (OpCode::Ping as i32, 7)], 0).total(), 5);
    }
}
