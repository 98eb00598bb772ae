//! What takes time, on a clock that does not. Links are pipes in memory: over real sockets the paused clock would run ahead
//! of the bytes.

mod support;

use docent_proto::{Code, CreateMode, EventKind, Request, WatchEvent};
use docent_server::{Bind, Builder, Limits, Listener, Server};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use support::{Peer, fresh};
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

struct World {
    server: Server,
    dial: mpsc::UnboundedSender<DuplexStream>,
}

impl World {
    async fn new(builder: Builder) -> Self {
        let (dial, links) = mpsc::unbounded_channel();
        let server = builder.start_on(Pipes(Arc::new(Mutex::new(links)))).await.expect("pipes are free");
        Self { server, dial }
    }

    fn link(&self) -> Peer {
        let (near, far) = tokio::io::duplex(1 << 16);
        self.dial.send(far).expect("the server lives");
        Peer::over(near)
    }

    async fn peer(&self, timeout_ms: i32) -> Peer {
        let mut peer = self.link();
        assert!(peer.attach(&fresh(timeout_ms)).await);
        peer
    }
}

/// Waits for the session to end and tells how long that took.
async fn end_of(server: &Server, session: i64) -> Duration {
    let start = Instant::now();
    while server.session(session).is_some() {
        sleep(Duration::from_millis(1)).await;
    }
    start.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_silent_session_ends_with_the_tick_in_which_its_timeout_does() {
    let world = World::new(Server::builder()).await;
    let mut silent = world.peer(5_000).await;
    silent.create("/mine", CreateMode::Ephemeral).await.unwrap();
    let mut watcher = world.peer(40_000).await;
    watcher.exists("/mine", true).await.unwrap();
    let took = end_of(&world.server, silent.session.session_id).await;
    let (timeout, tick) = (Duration::from_millis(5_000), Duration::from_millis(2_002));
    assert!(took > timeout && took <= timeout + tick, "{took:?}");
    assert_eq!(watcher.event().await, WatchEvent { kind: EventKind::Deleted, path: "/mine".into() });
    assert!(silent.is_closed().await);
}

#[tokio::test(start_paused = true)]
async fn pings_keep_a_session_alive() {
    let world = World::new(Server::builder()).await;
    let mut peer = world.peer(4_000).await;
    for _ in 0..20 {
        sleep(Duration::from_secs(3)).await;
        peer.call(Request::Ping).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn no_session_expires_while_the_server_does_not_listen() {
    let world = World::new(Server::builder()).await;
    let peer = world.peer(4_000).await;
    world.server.stop_listening().await.unwrap();
    sleep(Duration::from_secs(3_600)).await;
    assert_eq!(world.server.session_count(), 1);
    world.server.listen_again().await.unwrap();
    let took = end_of(&world.server, peer.session.session_id).await;
    assert!(took > Duration::from_secs(4), "a full timeout from the return: {took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_container_goes_some_time_after_its_last_child() {
    let world = World::new(Server::builder().container_check(Duration::from_secs(5))).await;
    let mut peer = world.peer(40_000).await;
    for path in ["/never-used", "/used"] {
        peer.create(path, CreateMode::Container).await.unwrap();
    }
    peer.create("/used/child", CreateMode::Persistent).await.unwrap();
    sleep(Duration::from_secs(6)).await;
    assert_eq!(world.server.nodes(), ["/never-used", "/used", "/used/child"]);
    peer.exists("/used", true).await.unwrap();
    peer.delete("/used/child").await.unwrap();
    sleep(Duration::from_secs(6)).await;
    assert_eq!(world.server.nodes(), ["/never-used"]);
    assert_eq!(peer.event().await, WatchEvent { kind: EventKind::Deleted, path: "/used".into() });
    assert_eq!(peer.exists("/used", false).await, Err(Code::NO_NODE));
}

#[tokio::test(start_paused = true)]
async fn a_link_has_its_time_for_the_handshake_and_no_more() {
    let limit = Duration::from_secs(7);
    let world = World::new(Server::builder().limits(Limits::default().handshake(limit))).await;
    let (mut silent, start) = (world.link(), Instant::now());
    assert!(silent.is_closed().await);
    assert_eq!(start.elapsed().as_secs(), limit.as_secs());
}
