//! The end of a session that was given up, on virtual time: servers that take nothing without credentials,
//! and servers that hang up.

use crate::link::{Link, attached};
use bytes::{Bytes, BytesMut};
use docent_core::{Client, ConnectionState, Dialled, Io, ServerAddress, TokioClock, Transport};
use docent_proto::{
    Code, ConnectRequest, Record, ReplyHeader, Request, RequestFrame, Response, Stat, write_frame, xid,
};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

const TIMEOUT: Duration = Duration::from_secs(10);
/// The first session, which is given up.
const OLD: i64 = 1;

/// Handling of a request to end the old session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Farewell {
    /// It ends if the link has sent credentials, and is refused otherwise.
    WantsCredentials,
    /// Credentials are refused: it ends if the link has sent none.
    RefusesCredentials,
    /// Nothing ends it, and an error says so.
    Refused,
    /// The link is closed without a word.
    HungUp,
}

/// One server, which keeps sessions for ever.
#[derive(Debug, Clone)]
struct Server(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    farewell: Farewell,
    reachable: bool,
    opened: i64,
    /// Number of times that the old session was attached again.
    attached: usize,
    ended: bool,
    reset: watch::Sender<u32>,
}

impl Server {
    fn new(farewell: Farewell) -> Self {
        let (opened, attached, reset) = (0, 0, watch::Sender::new(0));
        Self(Arc::new(Mutex::new(State { farewell, reachable: true, opened, attached, ended: false, reset })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// A client with a new session, whose first one was given up while the server could not be reached.
    async fn abandoned(&self) -> Client {
        let client = Client::builder("server:2181")
            .transport(self.clone())
            .clock(TokioClock::default())
            .session_timeout(TIMEOUT)
            .auth_digest("user", "password")
            .allow_plaintext_auth()
            .connect()
            .await
            .unwrap();
        self.state().reachable = false;
        self.state().reset.send_modify(|resets| *resets += 1);
        client.state().reached(ConnectionState::Lost).await;
        self.state().reachable = true;
        client.state().reached(ConnectionState::Connected).await;
        client
    }

    async fn serve(self, mut client: Link) {
        let mut reset = self.state().reset.subscribe();
        let (mut session, mut authenticated) = (None, false);
        loop {
            let frame = tokio::select! {
                frame = client.next() => frame,
                _ = reset.changed() => None,
            };
            let Some(frame) = frame else { return };
            let mut out = BytesMut::new();
            let code = match session {
                None => {
                    session = Some(self.connect(frame, &mut out));
                    Some(Code::OK)
                }
                Some(session) => self.answer(session, frame, &mut authenticated, &mut out),
            };
            client.send(&out).await;
            if code != Some(Code::OK) {
                return;
            }
        }
    }

    fn connect(&self, frame: Bytes, out: &mut BytesMut) -> i64 {
        let request = ConnectRequest::decode(frame).unwrap();
        let mut state = self.state();
        let session_id = if request.session_id == 0 {
            state.opened += 1;
            state.opened
        } else {
            request.session_id
        };
        let is_known = session_id != OLD || !state.ended;
        state.attached += usize::from(session_id == OLD);
        attached(&request, if is_known { session_id } else { 0 }, out);
        session_id
    }

    /// The code of the answer, if there is one.
    fn answer(
        &self,
        session: i64,
        frame: Bytes,
        authenticated: &mut bool,
        out: &mut BytesMut,
    ) -> Option<Code> {
        let RequestFrame { xid: number, request } = RequestFrame::decode(frame).unwrap();
        let ends = session == OLD && request == Request::CloseSession;
        let farewell = self.state().farewell;
        let code = match farewell {
            Farewell::RefusesCredentials
                if number == xid::AUTH && session == OLD && self.state().opened > OLD =>
            {
                Code::AUTH_FAILED
            }
            Farewell::HungUp if ends => return None,
            Farewell::Refused if ends => Code::AUTH_FAILED,
            Farewell::WantsCredentials if number != xid::AUTH && !*authenticated => Code::AUTH_FAILED,
            _ => Code::OK,
        };
        *authenticated |= number == xid::AUTH && code == Code::OK;
        self.state().ended |= ends && code == Code::OK;
        write_frame(out, |out| {
            ReplyHeader { xid: number, zxid: 1, code }.write(out);
            if let Request::Exists { .. } = request {
                Response::Stat(Stat::default()).write(out);
            }
        });
        Some(code)
    }
}

impl Transport for Server {
    fn resolve<'a>(&'a self, _server: &'a ServerAddress) -> Dialled<'a, Vec<SocketAddr>> {
        Box::pin(async { Ok(vec![([127, 0, 0, 1], 2181).into()]) })
    }

    fn dial<'a>(&'a self, _: &'a ServerAddress, _: SocketAddr) -> Dialled<'a, Box<dyn Io>> {
        Box::pin(async {
            if !self.state().reachable {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let (server, client) = Link::open();
            tokio::spawn(self.clone().serve(server));
            Ok(client)
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_given_up_is_ended_on_a_server_that_takes_nothing_without_credentials() {
    let server = Server::new(Farewell::WantsCredentials);
    let client = server.abandoned().await;
    let ended = async {
        while !server.state().ended {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(TIMEOUT, ended).await.unwrap();
    let before = server.state().attached;
    assert!(before <= 2, "at its beginning and its end: {before}");
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_given_up_is_ended_without_credentials_that_are_refused_now() {
    let server = Server::new(Farewell::RefusesCredentials);
    let client = server.abandoned().await;
    let ended = async {
        while !server.state().ended {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(TIMEOUT, ended).await.unwrap();
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_end_is_refused_is_not_kept_alive_by_attempts_to_end_it() {
    for (farewell, most) in [(Farewell::Refused, 2), (Farewell::HungUp, 3)] {
        let server = Server::new(farewell);
        let client = server.abandoned().await;
        sleep(TIMEOUT * 10).await;
        let attached = server.state().attached - 1;
        assert!((1..=most).contains(&attached), "{farewell:?}: attached {attached} times");
        client.close().await;
    }
}
