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

/// Pause after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(10);

/// TCP proxy on loopback by which one server of an ensemble reaches another. It knows only one thing of the
/// bytes it carries: servers tell each other where they can be called back, and are told of the link that
/// leads there instead.
///
/// # On drop
/// Its connections are closed.
#[derive(Debug)]
pub(super) struct PeerLink {
    port: Port,
    whole: watch::Sender<bool>,
    /// Set while a server may be called back past all links, because its address was not corrected.
    bypassed: Arc<AtomicBool>,
    listens: JoinHandle<()>,
}

/// An address that is told, and the one to tell instead.
#[derive(Debug, Clone)]
pub(super) struct CallBack {
    told: String,
    instead: String,
}

impl CallBack {
    /// Both have as many digits, because ports are from a range of five.
    pub(super) fn new(told: SocketAddr, instead: SocketAddr) -> Self {
        Self { told: told.to_string(), instead: instead.to_string() }
    }

    /// Replaces the address in `data`; false when it is not there.
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
    /// Opens a link from `port` to `to`, for servers that tell where to call back if there is a `call_back`.
    pub(super) async fn open(port: Port, to: SocketAddr, call_back: Option<CallBack>) -> io::Result<Self> {
        let listener = port.listen().await?;
        let (whole, bypassed) = (watch::Sender::new(true), Arc::<AtomicBool>::default());
        let carries = Carries { to, call_back, whole: whole.clone(), bypassed: Arc::clone(&bypassed) };
        Ok(Self { port, whole, bypassed, listens: tokio::spawn(carries.listen(listener)) })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Lets nothing through from now on, and tells nobody. Bytes on the way come through once the link is
    /// whole again. New connections are closed at once: servers that wait for answers to those take long to
    /// agree on a leader.
    ///
    /// # Panics
    /// When a server did not say where to call it back, and may be reached past all links.
    pub(super) fn cut(&self) {
        assert!(!self.bypassed.load(Relaxed), "this version of ZooKeeper tells addresses in another way");
        self.whole.send_replace(false);
    }

    pub(super) fn mend(&self) {
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
        // Once one way has ended, the other one has no meaning for these servers.
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
            // The end of one side is not told over a link that is cut, either.
            let length = from.read(&mut buffer).await.unwrap_or(0);
            whole.wait_for(|whole| *whole).await.map_err(io::Error::other)?;
            if length == 0 {
                return to.shutdown().await;
            }
            // The address is in the first bytes, which are written at once.
            if let Some(call_back) = call_back.take()
                && !call_back.correct(&mut buffer[..length])
            {
                self.bypassed.store(true, Relaxed);
            }
            to.write_all(&buffer[..length]).await?;
        }
    }
}
