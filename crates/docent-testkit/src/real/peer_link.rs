use crate::ports::Port;
use docent_server::{Listener, Listening};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// Pause after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(10);

/// A TCP proxy on loopback by which one server of an ensemble reaches another. It interprets only one thing
/// in the data: servers send each other the address for calling them back, which it replaces by the address
/// of the link that leads there.
///
/// # On drop
/// The connections of the link are closed.
#[derive(Debug)]
pub(super) struct PeerLink {
    port: Port,
    whole: watch::Sender<bool>,
    /// Whether a server may be called back without a link, because its address was not replaced.
    bypassed: Arc<AtomicBool>,
    listens: JoinHandle<()>,
}

/// An address that a server sends, and its replacement.
#[derive(Debug, Clone)]
pub(super) struct CallBack {
    told: String,
    instead: String,
}

impl CallBack {
    /// Creates a replacement. Both addresses have the same length, because all ports have five digits.
    pub(super) fn new(told: SocketAddr, instead: SocketAddr) -> Self {
        Self { told: told.to_string(), instead: instead.to_string() }
    }

    /// Replaces the address in `data`. Returns `false` if `data` does not contain it.
    fn correct(&self, data: &mut [u8]) -> bool {
        let (told, instead) = (self.told.as_bytes(), self.instead.as_bytes());
        let at = data.windows(told.len()).position(|window| window == told);
        if let Some(at) = at {
            data[at..at + told.len()].copy_from_slice(instead);
        }
        at.is_some()
    }
}

impl PeerLink {
    /// Opens a link from `port` to `to`. If there is a `call_back`, its address is replaced in the data.
    pub(super) async fn open(port: Port, to: SocketAddr, call_back: Option<CallBack>) -> io::Result<Self> {
        let listener = port.listen().await?;
        let (whole, bypassed) = (watch::Sender::new(true), Arc::<AtomicBool>::default());
        let carries = Carries { to, call_back, whole: whole.clone(), bypassed: Arc::clone(&bypassed) };
        Ok(Self { port, whole, bypassed, listens: tokio::spawn(carries.listen(listener)) })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Blocks the link silently from now on. Bytes in transit arrive once the link is restored. New
    /// connections are closed immediately, because servers that wait for answers to them take long to agree
    /// on a leader.
    ///
    /// # Panics
    /// If a server did not send its address, and may therefore be reachable without a link.
    pub(super) fn cut(&self) {
        assert!(!self.bypassed.load(Relaxed), "this ZooKeeper sends addresses in an unknown format");
        self.whole.send_replace(false);
    }

    pub(super) fn heal(&self) {
        self.whole.send_replace(true);
    }
}

impl Drop for PeerLink {
    fn drop(&mut self) {
        self.listens.abort();
    }
}

/// Task that carries the data of a link.
#[derive(Debug, Clone)]
struct Carries {
    to: SocketAddr,
    call_back: Option<CallBack>,
    whole: watch::Sender<bool>,
    bypassed: Arc<AtomicBool>,
}

impl Carries {
    async fn listen(self, mut listener: Listening) {
        // The connections end with this task.
        let mut connections = JoinSet::new();
        loop {
            match listener.accept().await {
                Ok((near, _)) => drop(connections.spawn(self.clone().connect(near))),
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
            while connections.try_join_next().is_some() {}
        }
    }

    async fn connect(self, near: TcpStream) -> io::Result<()> {
        if !*self.whole.borrow() {
            return Ok(());
        }
        let far = TcpStream::connect(self.to).await?;
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        let (from_near, to_near) = near.into_split();
        let (from_far, to_far) = far.into_split();
        // These servers do not use one direction without the other.
        tokio::select! {
            ended = self.carry(from_near, to_far, self.call_back.as_ref()) => ended,
            ended = self.carry(from_far, to_near, None) => ended,
        }
    }

    async fn carry(
        &self,
        mut from: OwnedReadHalf,
        mut to: OwnedWriteHalf,
        mut call_back: Option<&CallBack>,
    ) -> io::Result<()> {
        let (mut buffer, mut whole) = (vec![0; 16 * 1024], self.whole.subscribe());
        loop {
            // Even the end of a stream must not pass a link that is cut.
            let length = from.read(&mut buffer).await.unwrap_or(0);
            whole.wait_for(|whole| *whole).await.map_err(io::Error::other)?;
            if length == 0 {
                return to.shutdown().await;
            }
            // The address is in the first bytes, which are sent in one write.
            if let Some(call_back) = call_back.take()
                && !call_back.correct(&mut buffer[..length])
            {
                self.bypassed.store(true, Relaxed);
            }
            to.write_all(&buffer[..length]).await?;
        }
    }
}
