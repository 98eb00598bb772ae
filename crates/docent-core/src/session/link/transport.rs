use crate::session::connect_string::ServerAddress;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// Future that the methods of a [`Transport`] return, as `async move { … }` in a `Box::pin` gives it.
pub type Dialled<'a, T> = BoxFuture<'a, io::Result<T>>;

/// A byte stream to a server.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// Way to reach servers. The default is [`TcpTransport`]; a simulation brings its own.
pub trait Transport: fmt::Debug + Send + Sync + 'static {
    /// The addresses of a server, asked anew before each round of attempts.
    fn resolve<'a>(&'a self, server: &'a ServerAddress) -> Dialled<'a, Vec<SocketAddr>>;

    /// Connects to one address of `server`. Dropped when it takes too long.
    fn dial<'a>(&'a self, server: &'a ServerAddress, address: SocketAddr) -> Dialled<'a, Box<dyn Io>>;
}

/// Plain TCP without delay.
#[derive(Debug, Clone, Copy, Default)]
pub struct TcpTransport;

impl Transport for TcpTransport {
    fn resolve<'a>(&'a self, server: &'a ServerAddress) -> Dialled<'a, Vec<SocketAddr>> {
        async move {
            let addresses = tokio::net::lookup_host((server.host.as_str(), server.port)).await?;
            Ok(addresses.collect())
        }
        .boxed()
    }

    fn dial<'a>(&'a self, _server: &'a ServerAddress, address: SocketAddr) -> Dialled<'a, Box<dyn Io>> {
        async move {
            let stream = TcpStream::connect(address).await?;
            // Requests are small and wait for each other's replies: Nagle would hold back every second one.
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Io>)
        }
        .boxed()
    }
}
