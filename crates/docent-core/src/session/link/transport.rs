use crate::session::connect_string::ServerAddress;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use socket2::SockRef;
use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Future that the methods of a [`Transport`] return, usually `Box::pin(async move { … })`.
pub type Dialled<'a, T> = BoxFuture<'a, io::Result<T>>;

/// A byte stream to a server.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A way to reach servers. The default is [`TcpTransport`]; a simulation provides its own.
pub trait Transport: fmt::Debug + Send + Sync + 'static {
    /// Returns the addresses of a server. Called again before each round of attempts.
    fn resolve<'a>(&'a self, server: &'a ServerAddress) -> Dialled<'a, Vec<SocketAddr>>;

    /// Connects to one address of `server`. The future is dropped if it takes too long.
    fn dial<'a>(&'a self, server: &'a ServerAddress, address: SocketAddr) -> Dialled<'a, Box<dyn Io>>;
}

/// Plain TCP with `TCP_NODELAY`.
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
            // Requests are small and wait for each other's replies, so Nagle's algorithm would delay every
            // second one.
            stream.set_nodelay(true)?;
            Ok(Box::new(TcpIo { stream, polled: Instant::now() }) as Box<dyn Io>)
        }
        .boxed()
    }
}

/// Time between two polls of a link after which the process may have been stalled.
const PAUSE: Duration = Duration::from_millis(1);

/// A TCP stream that reads received data even if the runtime has not noticed it yet.
///
/// After a stall of the process, a task may run before the runtime has asked the system which sockets are
/// readable. An event that arrived during the stall must be read before anything is written that depends on
/// it.
struct TcpIo {
    stream: TcpStream,
    /// Time of the last poll that left nothing to read, or of the stream's creation.
    polled: Instant,
}

impl TcpIo {
    /// Reads from the socket without asking the runtime.
    fn read_now(&mut self, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        /// Maximum number of bytes per read; the rest follows.
        const MAX_READ: usize = 8 * 1024;
        let max = buf.remaining().min(MAX_READ);
        match (&*SockRef::from(&self.stream)).read(buf.initialize_unfilled_to(max)) {
            Ok(read) => {
                buf.advance(read);
                Poll::Ready(Ok(()))
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                self.polled = Instant::now();
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl AsyncRead for TcpIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        let now = Instant::now();
        if read.is_pending() && now.duration_since(self.polled) >= PAUSE {
            return self.read_now(buf);
        }
        self.polled = now;
        read
    }
}

impl AsyncWrite for TcpIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::task::noop_waker_ref;
    use std::io::Write;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn bytes_that_arrived_during_a_stall_are_read_before_the_runtime_reports_them() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = ServerAddress { host: address.ip().to_string(), port: address.port() };
        let (io, accepted) = tokio::join!(TcpTransport.dial(&server, address), listener.accept());
        let (mut io, mut peer) = (io.unwrap(), accepted.unwrap().0.into_std().unwrap());
        peer.set_nonblocking(false).unwrap();
        let mut poll = |bytes: &mut [u8]| {
            let mut buf = ReadBuf::new(bytes);
            let read = Pin::new(&mut io).poll_read(&mut Context::from_waker(noop_waker_ref()), &mut buf);
            read.map(|read| read.map(|()| buf.filled().len()).unwrap())
        };
        let mut bytes = [0; 4];
        assert!(poll(&mut bytes).is_pending());
        // This thread does not return to the runtime in the meantime.
        peer.write_all(b"event").unwrap();
        std::thread::sleep(PAUSE);
        assert_eq!(poll(&mut bytes), Poll::Ready(4));
        assert_eq!(poll(&mut bytes), Poll::Ready(1));
        assert!(poll(&mut bytes).is_pending());
        drop(peer);
        std::thread::sleep(PAUSE);
        assert_eq!(poll(&mut bytes), Poll::Ready(0), "the end");
        assert_eq!(io.read(&mut bytes).await.unwrap(), 0);
    }
}
