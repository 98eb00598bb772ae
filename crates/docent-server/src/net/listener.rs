use std::future::Future;
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

/// Source of links. Implemented for tokio's [`TcpListener`]; a simulation brings its own.
pub trait Listener: Send + 'static {
    /// A link: bytes both ways.
    type Io: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    /// Waits for the next link.
    ///
    /// # Errors
    /// When the operating system refuses; the server tries again.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    fn accept(&mut self) -> impl Future<Output = io::Result<(Self::Io, SocketAddr)>> + Send;

    /// The address that clients connect to.
    ///
    /// # Errors
    /// When the operating system does not tell.
    fn local_addr(&self) -> io::Result<SocketAddr>;
}

/// Maker of listeners: of one at the start, and of another each time the server comes back.
pub trait Bind: Send + 'static {
    /// The listener that it makes.
    type Listener: Listener;

    /// Listens on `address`, where port 0 is any free one.
    ///
    /// # Errors
    /// When the address cannot be had.
    fn bind(&self, address: SocketAddr) -> impl Future<Output = io::Result<Self::Listener>> + Send;
}

impl Listener for TcpListener {
    type Io = TcpStream;

    async fn accept(&mut self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = TcpListener::accept(self).await?;
        // A link that was closed meanwhile cannot be set; the server finds out when it reads.
        let _ = stream.set_nodelay(true);
        Ok((stream, peer))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        TcpListener::local_addr(self)
    }
}
