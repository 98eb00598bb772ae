use super::{READ_MAX, READ_MIN};
use crate::session::connect_string::ServerAddress;
use crate::session::lease::Lease;
use crate::session::link::dialer::{Dialer, Ensemble, Start};
use crate::session::link::transport::{Dialled, Io, Transport};
use crate::session::own::session::WireSession;
use crate::session::{Lane, Session, SessionSettings};
use crate::telemetry::Instruments;
use crate::time::TokioClock;
use bytes::{Buf, Bytes, BytesMut};
use docent_proto::{
    Code, ConnectResponse, EventKind, MultiOp, Record, ReplyHeader, Request, WatchEvent, write_frame, xid,
};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const EVENTS: usize = 50_000;

/// A server that accepts the handshake and then sends events as fast as they are read, up to a limit.
#[derive(Debug, Clone, Default)]
struct Flood {
    read: Arc<AtomicUsize>,
    /// Number of events that were read when the request arrived.
    requested_after: Arc<AtomicUsize>,
    dials: Arc<AtomicUsize>,
    /// Free capacity of the read buffer at each read.
    rooms: Arc<Mutex<Vec<usize>>>,
}

struct FloodLink {
    flood: Flood,
    ready: BytesMut,
    writes: usize,
}

impl Transport for Flood {
    fn resolve<'a>(&'a self, _: &'a ServerAddress) -> Dialled<'a, Vec<SocketAddr>> {
        Box::pin(async { Ok(vec![(Ipv4Addr::LOCALHOST, 2181).into()]) })
    }

    fn dial<'a>(&'a self, _: &'a ServerAddress, _: SocketAddr) -> Dialled<'a, Box<dyn Io>> {
        self.dials.fetch_add(1, SeqCst);
        let link = FloodLink { flood: self.clone(), ready: greeting(), writes: 0 };
        Box::pin(async { Ok(Box::new(link) as Box<dyn Io>) })
    }
}

fn greeting() -> BytesMut {
    let response = ConnectResponse {
        timeout_ms: 30_000,
        session_id: 0x51,
        password: Bytes::from_static(&[7; 16]),
        read_only: Some(false),
    };
    let mut out = BytesMut::new();
    write_frame(&mut out, |out| response.write(out));
    out
}

fn event() -> BytesMut {
    let mut out = BytesMut::new();
    write_frame(&mut out, |out| {
        ReplyHeader { xid: xid::NOTIFICATION, zxid: -1, code: Code::OK }.write(out);
        WatchEvent { kind: EventKind::DataChanged, path: "/changes".to_owned() }.write(out);
    });
    out
}

impl AsyncRead for FloodLink {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.flood.rooms.lock().unwrap().push(buf.remaining());
        while self.ready.len() < buf.remaining() && self.flood.read.load(SeqCst) < EVENTS {
            self.flood.read.fetch_add(1, SeqCst);
            self.ready.extend_from_slice(&event());
        }
        if self.ready.is_empty() {
            return Poll::Pending;
        }
        let length = self.ready.len().min(buf.remaining());
        buf.put_slice(&self.ready[..length]);
        self.ready.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for FloodLink {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.writes += 1;
        // The first write is the handshake.
        if self.writes == 2 {
            self.flood.requested_after.store(self.flood.read.load(SeqCst), SeqCst);
        }
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

const SECOND: Duration = Duration::from_secs(1);

/// Opens a session on such a server.
fn open(flood: &Flood) -> WireSession {
    let settings = SessionSettings {
        timeout: SECOND * 30,
        last_zxid: 0,
        queue_limit: 10,
        inbound_limit: 1 << 20,
        outbound_limit: 1 << 20,
        ephemeral_limit: 64 * 1024,
        credentials: Vec::new(),
        sasl: None,
        only_reads: false,
        abilities: Arc::default(),
    };
    let server = ServerAddress { host: "flood".to_owned(), port: 2181 };
    let dialer = Dialer::new(
        Ensemble::new(Arc::new(flood.clone()), vec![server], Arc::new(Instruments::new(&"1".into()))),
        Start::Immediately,
    );
    let (lease, clock) = (Arc::new(Lease::new(SECOND)), Arc::new(TokioClock::new()));
    let (session, run) = WireSession::open(settings, lease, clock, dialer);
    tokio::spawn(run);
    session
}

#[tokio::test(start_paused = true)]
async fn a_read_buffer_starts_small_grows_with_reads_and_is_freed_when_idle() {
    let flood = Flood::default();
    let _session = open(&flood);
    while flood.read.load(SeqCst) < EVENTS {
        tokio::task::yield_now().await;
    }
    let rooms = flood.rooms.lock().unwrap().clone();
    assert!(rooms[0] == READ_MIN && rooms.iter().any(|room| *room >= READ_MAX));
    let last = || *flood.rooms.lock().unwrap().last().unwrap();
    while last() > READ_MIN {
        tokio::time::sleep(SECOND).await;
    }
    assert_eq!(flood.dials.load(SeqCst), 1, "the link is still the same");
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_events_does_not_keep_a_heartbeat_from_being_sent() {
    let flood = Flood::default();
    let session = open(&flood);
    // Like the heartbeat, a task that runs beside the driver's.
    let keeper = tokio::spawn(async move {
        session.link().wait_for(|link| link.up).await.unwrap();
        let check = MultiOp::Check { path: "/lock".to_owned(), version: -1 };
        session.submit(Request::Multi(vec![check]), Lane::Lease).await
    });
    while flood.read.load(SeqCst) < EVENTS || flood.requested_after.load(SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    let after = flood.requested_after.load(SeqCst);
    assert!(after < EVENTS / 2, "the heartbeat was sent after {after} events");
    keeper.abort();
}
