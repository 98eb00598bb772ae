use crate::ports::Port;
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// What one server of an ensemble reaches another one by: a TCP proxy on loopback. It knows nothing of what it carries but one thing:
/// servers tell each other where they can be called back, and are told of the cable that leads there instead.
///
/// # On drop
/// Its connections are closed.
#[derive(Debug)]
pub(super) struct Cable {
    port: Port,
    whole: watch::Sender<bool>,
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

    fn correct(&self, data: &mut [u8]) {
        let (told, instead) = (self.told.as_bytes(), self.instead.as_bytes());
        if let Some(at) = data.windows(told.len()).position(|window| window == told) {
            data[at..at + told.len()].copy_from_slice(instead);
        }
    }
}

impl Cable {
    /// From `port` to `to`.
    pub(super) async fn lay(port: Port, to: SocketAddr, call_back: CallBack) -> io::Result<Self> {
        let listener = TcpListener::bind(port.address()).await?;
        let whole = watch::Sender::new(true);
        let listens = tokio::spawn(listen(listener, to, call_back, whole.clone()));
        Ok(Self { port, whole, listens })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// From now on nothing comes through, and nobody is told. What is on the way comes through once it is whole again. New connections
    /// are closed at once: servers that wait for answers to those take long to agree on a leader.
    pub(super) fn cut(&self) {
        self.whole.send_replace(false);
    }

    pub(super) fn mend(&self) {
        self.whole.send_replace(true);
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.listens.abort();
    }
}

async fn listen(listener: TcpListener, to: SocketAddr, call_back: CallBack, whole: watch::Sender<bool>) {
    // The connections end with this task.
    let mut connections = JoinSet::new();
    while let Ok((near, _)) = listener.accept().await {
        connections.spawn(connect(near, to, call_back.clone(), whole.subscribe()));
        while connections.try_join_next().is_some() {}
    }
}

async fn connect(
    near: TcpStream,
    to: SocketAddr,
    call_back: CallBack,
    whole: watch::Receiver<bool>,
) -> io::Result<()> {
    if !*whole.borrow() {
        return Ok(());
    }
    let far = TcpStream::connect(to).await?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let (from_near, to_near) = near.into_split();
    let (from_far, to_far) = far.into_split();
    // Once one way has ended, the other one has no meaning for these servers.
    tokio::select! {
        ended = carry(from_near, to_far, Some(call_back), whole.clone()) => ended,
        ended = carry(from_far, to_near, None, whole.clone()) => ended,
    }
}

async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut call_back: Option<CallBack>,
    mut whole: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let length = from.read(&mut buffer).await?;
        whole.wait_for(|whole| *whole).await.map_err(io::Error::other)?;
        if length == 0 {
            return to.shutdown().await;
        }
        // It is told in what is sent first, which is written at once.
        if let Some(call_back) = call_back.take() {
            call_back.correct(&mut buffer[..length]);
        }
        to.write_all(&buffer[..length]).await?;
    }
}
