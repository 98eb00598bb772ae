//! A server on a clock that tests advance. Links are pipes in memory, because with real sockets the paused
//! clock would advance before the bytes arrive.

use super::{Peer, fresh};
use docent_proto::ConnectRequest;
use docent_server::{Bind, Builder, Follower, FollowerBuilder, Listener, Server};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::DuplexStream;
use tokio::sync::{Mutex, mpsc};
use tokio::time::{Instant, sleep};

type Links = mpsc::UnboundedReceiver<DuplexStream>;

struct Pipes(Arc<Mutex<Links>>);

impl Bind for Pipes {
    type Listener = Self;

    async fn bind(&self, _: SocketAddr) -> io::Result<Self> {
        Ok(Self(Arc::clone(&self.0)))
    }
}

impl Listener for Pipes {
    type Io = DuplexStream;

    async fn accept(&mut self) -> io::Result<(DuplexStream, SocketAddr)> {
        match self.0.lock().await.recv().await {
            Some(io) => Ok((io, ([127, 0, 0, 1], 1).into())),
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(([127, 0, 0, 1], 2181).into())
    }
}

/// Address of the server, or of one of its followers, for clients.
pub(crate) struct Dial(mpsc::UnboundedSender<DuplexStream>);

impl Dial {
    fn new() -> (Self, Pipes) {
        let (dial, links) = mpsc::unbounded_channel();
        (Self(dial), Pipes(Arc::new(Mutex::new(links))))
    }

    /// Opens a link without sending anything.
    pub(crate) fn link(&self) -> Peer {
        let (near, far) = tokio::io::duplex(1 << 16);
        // Once the listener has been dropped, the far end is dropped too, which closes the link.
        let _ = self.0.send(far);
        Peer::over(near)
    }

    /// Connects with a new session.
    pub(crate) async fn peer(&self, timeout_ms: i32) -> Peer {
        self.attach(&fresh(timeout_ms)).await
    }

    pub(crate) async fn attach(&self, request: &ConnectRequest) -> Peer {
        let mut peer = self.link();
        assert!(peer.attach(request).await);
        peer
    }
}

pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) dial: Dial,
    start: Instant,
}

impl World {
    /// Starts a server whose clock, and therefore its ticks, start at 0.
    pub(crate) async fn new(builder: Builder) -> Self {
        let start = Instant::now();
        let (dial, pipes) = Dial::new();
        let builder = builder.clock(move || start.elapsed());
        let server = builder.start_on(pipes).await.expect("pipes are free");
        Self { server, dial, start }
    }

    pub(crate) fn link(&self) -> Peer {
        self.dial.link()
    }

    pub(crate) async fn peer(&self, timeout_ms: i32) -> Peer {
        self.dial.peer(timeout_ms).await
    }

    pub(crate) async fn follower(
        &self,
        configure: impl FnOnce(FollowerBuilder<'_>) -> FollowerBuilder<'_>,
    ) -> (Follower, Dial) {
        let (dial, pipes) = Dial::new();
        let follower = configure(self.server.follower()).start_on(pipes).await.expect("pipes are free");
        (follower, dial)
    }

    /// Waits until the server's clock reaches `ms`.
    pub(crate) async fn at(&self, ms: u64) {
        tokio::time::sleep_until(self.start + Duration::from_millis(ms)).await;
    }

    /// Waits for the session to end, and returns the time of the server's clock.
    pub(crate) async fn end_of(&self, peer: &Peer) -> i64 {
        while self.server.session(peer.session.session_id).is_some() {
            sleep(Duration::from_millis(1)).await;
        }
        self.server.time_ms()
    }
}
