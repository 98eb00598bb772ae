use std::future::Future;
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

/// A source of links. It is implemented for tokio's [`TcpListener`]; a simulation provides its own
/// implementation.
pub trait Listener: Send + 'static {
    /// A link: a stream of bytes in both directions.
    type Io: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    /// Waits for the next link.
    ///
    /// # Errors
    /// If the operating system fails to accept a connection. The server tries again.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    fn accept(&mut self) -> impl Future<Output = io::Result<(Self::Io, SocketAddr)>> + Send;

    /// Returns the address that clients connect to.
    ///
    /// # Errors
    /// If the operating system does not report it.
    fn local_addr(&self) -> io::Result<SocketAddr>;
}

/// A factory of listeners: one when the server starts, and another each time the server listens again.
pub trait Bind: Send + 'static {
    /// The type of listener that is created.
    type Listener: Listener;

    /// Listens on `address`, where port 0 means any free port.
    ///
    /// # Errors
    /// If the address is not available.
    fn bind(&self, address: SocketAddr) -> impl Future<Output = io::Result<Self::Listener>> + Send;
}

impl Listener for TcpListener {
    type Io = TcpStream;

    async fn accept(&mut self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = TcpListener::accept(self).await?;
        // This fails if the link has been closed in the meantime. The server notices that when it reads.
        let _ = stream.set_nodelay(true);
        Ok((stream, peer))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        TcpListener::local_addr(self)
    }
}
