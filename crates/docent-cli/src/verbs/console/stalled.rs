use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Maximum time for which a client may accept nothing of a reply.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection that fails if its client stops reading, so that such clients do not use up the connections.
pub(super) struct Stalled<T> {
    inner: T,
    /// Ends when the client has accepted nothing for too long. `None` while nothing waits for the client.
    limit: Option<Pin<Box<Sleep>>>,
}

impl<T> Stalled<T> {
    pub(super) fn new(inner: T) -> Self {
        Self { inner, limit: None }
    }
}

impl<T: AsyncWrite + Unpin> Stalled<T> {
    /// Polls a write, and fails if writes have been pending for too long.
    fn poll_limited<R>(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut T>, &mut Context<'_>) -> Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        if let Poll::Ready(done) = write(Pin::new(&mut self.inner), context) {
            self.limit = None;
            return Poll::Ready(done);
        }
        let limit = self.limit.get_or_insert_with(|| Box::pin(sleep(PATIENCE)));
        ready!(limit.as_mut().poll(context));
        limit.as_mut().reset(Instant::now() + PATIENCE);
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Stalled<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Stalled<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_limited(context, |inner, context| inner.poll_write(context, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_limited(context, AsyncWrite::poll_flush)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_limited(context, AsyncWrite::poll_shutdown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    #[tokio::test(start_paused = true)]
    async fn a_client_that_stops_reading_is_dropped_and_a_slow_one_is_not() {
        let (server, mut client) = duplex(8);
        let writing = tokio::spawn(async move {
            let mut server = Stalled::new(server);
            server.write_all(&[0; 64]).await?;
            server.write_all(&[0; 64]).await
        });
        let mut bytes = [0; 8];
        for _ in 0..8 {
            tokio::time::advance(PATIENCE - Duration::from_secs(1)).await;
            client.read_exact(&mut bytes).await.unwrap();
        }
        let written = tokio::time::timeout(PATIENCE * 2, writing).await.expect("the write must fail in time");
        let error = written.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
