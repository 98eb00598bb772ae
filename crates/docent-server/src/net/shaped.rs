use super::lane::Lane;
use super::shape::{Shape, SharedShape};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Maximum bytes to read from the transport at a time.
const CHUNK: usize = 16 << 10;

/// Transport of a link, which passes bytes according to the link's [`Shape`]. A change of the shape must wake
/// the link's task, which then polls both directions again. Each poll moves the bytes of both directions.
pub(super) struct Shaped<Io> {
    io: Io,
    shape: SharedShape,
    to_server: Lane,
    to_client: Lane,
    /// Whether the client has sent its last byte.
    ended: bool,
}

impl<Io: AsyncRead + AsyncWrite + Unpin> Shaped<Io> {
    pub(super) fn new(io: Io, shape: SharedShape) -> Self {
        Self { io, shape, to_server: Lane::new(), to_client: Lane::new(), ended: false }
    }

    /// Reads what the client has sent.
    fn poll_fill(&mut self, cx: &mut Context<'_>, shape: Shape) -> io::Result<()> {
        let mut chunk = [0; CHUNK];
        while !self.ended && self.to_server.room() > 0 {
            let most = self.to_server.room().min(CHUNK);
            let mut chunk = ReadBuf::new(&mut chunk[..most]);
            match Pin::new(&mut self.io).poll_read(cx, &mut chunk)? {
                Poll::Ready(()) if chunk.filled().is_empty() => self.ended = true,
                Poll::Ready(()) => self.to_server.push(chunk.filled(), shape),
                Poll::Pending => break,
            }
        }
        Ok(())
    }

    /// Writes the bytes that are due to the client. Ready once none are left.
    fn poll_deliver(&mut self, cx: &mut Context<'_>, shape: Shape) -> Poll<io::Result<()>> {
        while !self.to_client.is_empty() {
            if shape.frozen {
                return Poll::Pending;
            }
            let piece = ready!(self.to_client.poll_front(cx, shape));
            let count = ready!(Pin::new(&mut self.io).poll_write(cx, piece))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.to_client.passed(count, shape);
        }
        Poll::Ready(Ok(()))
    }

    /// Moves bytes to the client when only the other direction is polled.
    fn deliver(&mut self, cx: &mut Context<'_>, shape: Shape) -> io::Result<()> {
        match self.poll_deliver(cx, shape) {
            Poll::Ready(delivered) => delivered,
            Poll::Pending => Ok(()),
        }
    }
}

impl<Io: AsyncRead + AsyncWrite + Unpin> AsyncRead for Shaped<Io> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let shape = this.shape.get();
        this.deliver(cx, shape)?;
        if shape.frozen {
            return Poll::Pending;
        }
        if this.to_server.is_empty() && (shape.is_free() || this.ended) {
            return Pin::new(&mut this.io).poll_read(cx, buf);
        }
        this.poll_fill(cx, shape)?;
        if this.to_server.is_empty() && this.ended {
            return Poll::Ready(Ok(()));
        }
        let piece = ready!(this.to_server.poll_front(cx, shape));
        let count = piece.len().min(buf.remaining());
        buf.put_slice(&piece[..count]);
        this.to_server.passed(count, shape);
        Poll::Ready(Ok(()))
    }
}

impl<Io: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Shaped<Io> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let shape = this.shape.get();
        if shape.is_free() && this.to_client.is_empty() {
            return Pin::new(&mut this.io).poll_write(cx, data);
        }
        this.deliver(cx, shape)?;
        let count = this.to_client.room().min(data.len());
        if count == 0 {
            return Poll::Pending;
        }
        this.to_client.push(&data[..count], shape);
        this.deliver(cx, shape)?;
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shape = self.shape.get();
        ready!(self.poll_deliver(cx, shape))?;
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shape = self.shape.get();
        ready!(self.poll_deliver(cx, shape))?;
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
