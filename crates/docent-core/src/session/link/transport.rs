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
            Ok(Box::new(TcpIo { stream, empty_at: Instant::now() }) as Box<dyn Io>)
        }
        .boxed()
    }
}

/// Time after a read that emptied a socket during which the runtime's knowledge of the socket is trusted. The
/// process may have been stalled for longer.
const PAUSE: Duration = Duration::from_millis(1);

/// A TCP stream that reads received data even if the runtime has not noticed it yet.
///
/// After a stall of the process, a task may run before the runtime has asked the system which sockets are
/// readable. An event that arrived during the stall must be read before anything is written that depends on
/// it.
struct TcpIo {
    stream: TcpStream,
    /// Time before the last read that emptied the socket, or of the stream's creation. A poll that made no
    /// system call does not count, and neither does the time after a read, because the process may have been
    /// stalled between the two.
    empty_at: Instant,
}

impl TcpIo {
    /// Polls the stream, and reads the socket if the runtime reports nothing and the last read is too old.
    fn poll_read_at(
        &mut self,
        now: Instant,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_read(cx, buf) {
            Poll::Pending if now.duration_since(self.empty_at) >= PAUSE => self.read_at(now, buf),
            Poll::Pending => Poll::Pending,
            Poll::Ready(read) => {
                // The socket contained less than there was room for.
                if buf.remaining() > 0 {
                    self.empty_at = now;
                }
                Poll::Ready(read)
            }
        }
    }

    /// Reads from the socket without asking the runtime.
    fn read_at(&mut self, now: Instant, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        /// Maximum number of bytes per read; the rest follows.
        const MAX_READ: usize = 8 * 1024;
        let max = buf.remaining().min(MAX_READ);
        loop {
            match (&*SockRef::from(&self.stream)).read(buf.initialize_unfilled_to(max)) {
                Ok(read) => {
                    buf.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.empty_at = now;
                    return Poll::Pending;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncRead for TcpIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll_read_at(Instant::now(), cx, buf)
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
    use tokio::net::TcpListener;

    /// A connected stream and its peer.
    async fn connected() -> (TcpIo, std::net::TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let connect = TcpStream::connect(listener.local_addr().unwrap());
        let (stream, accepted) = tokio::join!(connect, listener.accept());
        let peer = accepted.unwrap().0.into_std().unwrap();
        peer.set_nonblocking(false).unwrap();
        (TcpIo { stream: stream.unwrap(), empty_at: Instant::now() }, peer)
    }

    /// Polls the stream at `now`, and returns the number of bytes read.
    fn poll(io: &mut TcpIo, now: Instant, bytes: &mut [u8]) -> Poll<usize> {
        let mut buf = ReadBuf::new(bytes);
        let read = io.poll_read_at(now, &mut Context::from_waker(noop_waker_ref()), &mut buf);
        read.map(|read| read.map(|()| buf.filled().len()).unwrap())
    }

    // The threads of these tests do not return to the runtime, so it does not learn what the sockets
    // received.

    #[tokio::test]
    async fn bytes_that_arrived_during_a_stall_are_read_before_the_runtime_reports_them() {
        let (mut io, mut peer) = connected().await;
        let now = Instant::now();
        let mut bytes = [0; 4];
        assert!(poll(&mut io, now, &mut bytes).is_pending());
        peer.write_all(b"event").unwrap();
        assert_eq!(poll(&mut io, now + PAUSE, &mut bytes), Poll::Ready(4));
        assert_eq!(poll(&mut io, now + PAUSE, &mut bytes), Poll::Ready(1));
        assert!(poll(&mut io, now + PAUSE, &mut bytes).is_pending());
        drop(peer);
        assert_eq!(poll(&mut io, now + 2 * PAUSE, &mut bytes), Poll::Ready(0), "the end");
    }

    #[tokio::test]
    async fn polls_in_quick_succession_do_not_hide_what_arrives() {
        let (mut io, mut peer) = connected().await;
        let now = Instant::now();
        let mut bytes = [0; 4];
        assert!(poll(&mut io, now, &mut bytes).is_pending());
        peer.write_all(b"new").unwrap();
        assert!(poll(&mut io, now + PAUSE / 2, &mut bytes).is_pending(), "within the pause");
        assert_eq!(poll(&mut io, now + PAUSE, &mut bytes), Poll::Ready(3));
    }

    #[tokio::test]
    async fn a_read_counts_from_before_it_because_a_stall_may_follow_it() {
        let (mut io, mut peer) = connected().await;
        let begun = Instant::now();
        let mut bytes = [0; 4];
        peer.write_all(b"old").unwrap();
        io.stream.readable().await.unwrap();
        assert_eq!(poll(&mut io, begun, &mut bytes), Poll::Ready(3), "through the runtime");
        // The process is stalled before this poll returns, and again below.
        peer.write_all(b"new").unwrap();
        assert_eq!(poll(&mut io, begun + PAUSE, &mut bytes), Poll::Ready(3));
        assert!(poll(&mut io, begun + PAUSE, &mut bytes).is_pending(), "from the socket");
        peer.write_all(b"newer").unwrap();
        assert_eq!(poll(&mut io, begun + 2 * PAUSE, &mut bytes), Poll::Ready(4));
    }

    #[tokio::test]
    async fn a_read_that_fills_its_buffer_leaves_the_next_to_read_the_socket() {
        let (mut io, mut peer) = connected().await;
        peer.write_all(b"event").unwrap();
        io.stream.readable().await.unwrap();
        let before = io.empty_at;
        let now = before + PAUSE / 2;
        let mut bytes = [0; 5];
        assert_eq!(poll(&mut io, now, &mut bytes), Poll::Ready(5));
        assert_eq!(io.empty_at, before);
    }
}
