//! Refused credentials in virtual time, against a server that is scripted frame by frame.

use crate::link::{Link, attached};
use bytes::{Bytes, BytesMut};
use docent_core::{
    Client, ClientBuilder, ConnectionState, Dialled, ErrorKind, Io, ServerAddress, TokioClock, Transport,
};
use docent_proto::{
    Code, ConnectRequest, Record, ReplyHeader, Request, RequestFrame, Response, Stat, write_frame,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// Network of servers that refuse the credentials of the first `refusals` sessions.
#[derive(Debug, Clone)]
struct Servers {
    refusals: usize,
    opened: Arc<AtomicUsize>,
    closed: Arc<AtomicUsize>,
}

impl Transport for Servers {
    fn resolve<'a>(&'a self, _server: &'a ServerAddress) -> Dialled<'a, Vec<SocketAddr>> {
        Box::pin(async { Ok(vec![([127, 0, 0, 1], 2181).into()]) })
    }

    fn dial<'a>(&'a self, _: &'a ServerAddress, _: SocketAddr) -> Dialled<'a, Box<dyn Io>> {
        Box::pin(async {
            let (server, client) = Link::open();
            tokio::spawn(self.clone().serve(server));
            Ok(client)
        })
    }
}

impl Servers {
    /// Serves one link until the client leaves or is refused.
    async fn serve(self, mut client: Link) {
        let mut session = None;
        while let Some(frame) = client.next().await {
            let mut out = BytesMut::new();
            let code = match session {
                None => {
                    session = Some(self.connect(frame, &mut out));
                    Code::OK
                }
                Some(session) => self.answer(session, frame, &mut out),
            };
            client.send(&out).await;
            if code != Code::OK {
                return;
            }
        }
    }

    /// Opens or attaches a session. Returns its number.
    fn connect(&self, frame: Bytes, out: &mut BytesMut) -> usize {
        let request = ConnectRequest::decode(frame).unwrap();
        let session = match usize::try_from(request.session_id).unwrap() {
            0 => self.opened.fetch_add(1, Ordering::Relaxed) + 1,
            session => session,
        };
        attached(&request, i64::try_from(session).unwrap(), out);
        session
    }

    /// Answers a request: `exists` with a stat, other requests with an empty response.
    fn answer(&self, session: usize, frame: Bytes, out: &mut BytesMut) -> Code {
        let RequestFrame { xid, request } = RequestFrame::decode(frame).unwrap();
        let refused = matches!(request, Request::Auth { .. }) && session <= self.refusals;
        let code = if refused { Code::AUTH_FAILED } else { Code::OK };
        if request == Request::CloseSession {
            self.closed.fetch_add(1, Ordering::Relaxed);
        }
        write_frame(out, |out| {
            ReplyHeader { xid, zxid: 1, code }.write(out);
            if let Request::Exists { .. } = request {
                Response::Stat(Stat::default()).write(out);
            }
        });
        code
    }
}

fn builder(refusals: usize) -> (ClientBuilder, Servers) {
    let servers = Servers { refusals, opened: Arc::default(), closed: Arc::default() };
    let builder = Client::builder("server:2181")
        .transport(servers.clone())
        .clock(TokioClock::default())
        .auth_digest("user", "password")
        .allow_plaintext_auth();
    (builder, servers)
}

#[tokio::test(start_paused = true)]
async fn connecting_with_refused_credentials_fails_immediately() {
    let (builder, _) = builder(usize::MAX);
    let start = Instant::now();
    let error = builder.connect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AuthFailed);
    assert!(start.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn refused_credentials_fail_waiting_requests_and_are_retried_slowly() {
    let (builder, servers) = builder(3);
    let client = builder.build().unwrap();
    let mut state = client.state();
    let error = client.exists("/a").await.unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::AuthFailed, Some("/a")));
    let refused = state.reached(ConnectionState::AuthFailed).await.unwrap();
    assert_eq!(refused.generation, 1);
    // While the client waits, new operations fail immediately.
    let start = Instant::now();
    assert_eq!(client.exists("/a").await.unwrap_err().kind(), ErrorKind::AuthFailed);
    assert_eq!(start.elapsed(), Duration::ZERO);
    let connected = state.reached(ConnectionState::Connected).await.unwrap();
    assert_eq!((connected.generation, servers.opened.load(Ordering::Relaxed)), (4, 4));
    assert_eq!(servers.closed.load(Ordering::Relaxed), 3, "useless sessions are ended");
    let range = Duration::from_secs(3 * 20)..Duration::from_secs(3 * 45);
    assert!(range.contains(&start.elapsed()), "{:?}", start.elapsed());
    client.exists("/a").await.unwrap();
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn closing_ends_the_wait_for_the_next_attempt() {
    let (builder, _) = builder(usize::MAX);
    let client = builder.build().unwrap();
    client.state().reached(ConnectionState::AuthFailed).await;
    let start = Instant::now();
    client.close().await;
    assert!(start.elapsed() < Duration::from_secs(1));
}
