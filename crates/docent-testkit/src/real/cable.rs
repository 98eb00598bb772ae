use crate::ports::Port;
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// What one server of an ensemble reaches another one by: a TCP proxy on loopback that knows nothing of what it carries.
///
/// # On drop
/// Its connections are closed.
#[derive(Debug)]
pub(super) struct Cable {
    port: Port,
    whole: watch::Sender<bool>,
    listens: JoinHandle<()>,
}

impl Cable {
    pub(super) async fn lay(to: SocketAddr) -> io::Result<Self> {
        let port = Port::claim()?;
        let listener = TcpListener::bind(port.address()).await?;
        let whole = watch::Sender::new(true);
        let listens = tokio::spawn(listen(listener, to, whole.clone()));
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

async fn listen(listener: TcpListener, to: SocketAddr, whole: watch::Sender<bool>) {
    // The connections end with this task.
    let mut connections = JoinSet::new();
    while let Ok((near, _)) = listener.accept().await {
        connections.spawn(connect(near, to, whole.subscribe()));
        while connections.try_join_next().is_some() {}
    }
}

async fn connect(near: TcpStream, to: SocketAddr, whole: watch::Receiver<bool>) -> io::Result<()> {
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
        ended = carry(from_near, to_far, whole.clone()) => ended,
        ended = carry(from_far, to_near, whole.clone()) => ended,
    }
}

async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut whole: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let length = from.read(&mut buffer).await?;
        whole.wait_for(|whole| *whole).await.map_err(io::Error::other)?;
        if length == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..length]).await?;
    }
}
