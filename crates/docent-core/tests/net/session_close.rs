//! The end of a session that was given up, or that a server does not know, in virtual time: servers that
//! accept nothing without credentials, servers that hang up, and leaders that have lost their followers.

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
use tokio::time::{Instant, sleep, timeout};

const TIMEOUT: Duration = Duration::from_secs(10);
/// The first session, which is given up.
const OLD: i64 = 1;
/// Number of the first transaction of the first term.
const TERM: i64 = 1 << 32;

/// Handling of a request to end the old session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CloseReply {
    /// The session ends if the link has sent credentials; otherwise the request is refused.
    WantsCredentials,
    /// Credentials are refused: the session ends if the link has sent none.
    RefusesCredentials,
    /// Every request to end the session is refused with an error.
    Refused,
    /// The link is closed without an answer.
    HungUp,
}

/// One server, which expires a session one timeout after its last attach.
#[derive(Debug, Clone)]
struct Server(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    close_reply: CloseReply,
    reachable: bool,
    opened: i64,
    /// Number of times that the old session was attached.
    attached: usize,
    /// Number of times that a link asked for the old session and was answered that it does not exist.
    denied: usize,
    /// Number of sessions that were opened and closed by one write.
    writes: usize,
    /// Time from which on the old session has expired.
    ends_at: Instant,
    ended: bool,
    /// The leader has lost its followers: it no longer knows the old session, and acknowledges no write. When
    /// the followers reconnect, or another leader is elected, the old session is known again.
    isolated: bool,
    /// Writes of sessions other than the old one are not answered.
    is_mute: bool,
    zxid: i64,
    /// Number of `writes` after which the next term begins.
    next_term_after: Option<usize>,
    reset: watch::Sender<u32>,
}

impl Server {
    fn new(close_reply: CloseReply) -> Self {
        Self(Arc::new(Mutex::new(State {
            close_reply,
            reachable: true,
            opened: 0,
            attached: 0,
            denied: 0,
            writes: 0,
            ends_at: Instant::now(),
            ended: false,
            isolated: false,
            is_mute: false,
            zxid: TERM,
            next_term_after: None,
            reset: watch::Sender::new(0),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    async fn connected(&self) -> Client {
        Client::builder("server:2181")
            .transport(self.clone())
            .clock(TokioClock::default())
            .session_timeout(TIMEOUT)
            .auth_digest("user", "password")
            .allow_plaintext_auth()
            .connect()
            .await
            .unwrap()
    }

    /// Closes all links.
    fn reset(&self) {
        self.state().reset.send_modify(|resets| *resets += 1);
    }

    /// A client with a new session, whose first session was given up while the server was unreachable.
    async fn abandoned(&self) -> Client {
        let client = self.connected().await;
        self.state().reachable = false;
        self.reset();
        client.state().reached(ConnectionState::Lost).await;
        self.state().reachable = true;
        // The servers were down as well: the session's timeout starts again now.
        self.state().ends_at = Instant::now() + TIMEOUT;
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
                    session = self.connect(frame, &mut out);
                    session.map(|_| Code::OK)
                }
                Some(session) => self.answer(session, frame, &mut authenticated, &mut out),
            };
            client.send(&out).await;
            if code != Some(Code::OK) {
                return;
            }
        }
    }

    /// Number of unsuccessful requests for the old session, and of sessions opened and closed.
    fn asked(&self) -> (usize, usize) {
        let state = self.state();
        (state.denied, state.writes)
    }

    /// The session of the link; `None` if the link is not answered.
    fn connect(&self, frame: Bytes, out: &mut BytesMut) -> Option<i64> {
        let request = ConnectRequest::decode(frame).unwrap();
        let mut state = self.state();
        if request.last_zxid_seen > state.zxid || request.session_id == 0 && state.isolated {
            return None;
        }
        let session_id = if request.session_id == 0 {
            state.opened += 1;
            state.zxid += 1;
            state.opened
        } else {
            request.session_id
        };
        let is_old = session_id == OLD;
        let has_ended = state.ended || state.attached > 0 && Instant::now() >= state.ends_at;
        let is_known = !is_old || !has_ended && !state.isolated;
        if is_old && is_known {
            state.attached += 1;
            state.ends_at = Instant::now() + TIMEOUT;
        }
        state.denied += usize::from(!is_known);
        attached(&request, if is_known { session_id } else { 0 }, out);
        Some(session_id)
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
        let ends_a_write = request == Request::CloseSession && session != OLD;
        if request == Request::CloseSession {
            let mut state = self.state();
            if state.isolated || state.is_mute && ends_a_write {
                return None;
            }
            state.zxid += 1;
            state.writes += usize::from(ends_a_write);
        }
        let close_reply = self.state().close_reply;
        let code = match close_reply {
            CloseReply::RefusesCredentials
                if number == xid::AUTH && session == OLD && self.state().opened > OLD =>
            {
                Code::AUTH_FAILED
            }
            CloseReply::HungUp if ends => return None,
            CloseReply::Refused if ends => Code::AUTH_FAILED,
            CloseReply::WantsCredentials if number != xid::AUTH && !*authenticated => Code::AUTH_FAILED,
            _ => Code::OK,
        };
        *authenticated |= number == xid::AUTH && code == Code::OK;
        self.state().ended |= ends && code == Code::OK;
        let zxid = self.state().zxid;
        write_frame(out, |out| {
            ReplyHeader { xid: number, zxid, code }.write(out);
            if let Request::Exists { .. } = request {
                Response::Stat(Stat::default()).write(out);
            }
        });
        let mut state = self.state();
        if ends_a_write && state.next_term_after == Some(state.writes) {
            (state.zxid, state.next_term_after) = (2 * TERM, None);
        }
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
async fn an_abandoned_session_is_ended_on_a_server_that_requires_credentials() {
    let server = Server::new(CloseReply::WantsCredentials);
    let client = server.abandoned().await;
    let ended = async {
        while !server.state().ended {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(TIMEOUT, ended).await.unwrap();
    let before = server.state().attached;
    assert!(before <= 2, "once at the start and once at the end: {before}");
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_session_is_ended_without_credentials_that_are_now_refused() {
    let server = Server::new(CloseReply::RefusesCredentials);
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
    for (close_reply, most) in [(CloseReply::Refused, 2), (CloseReply::HungUp, 3)] {
        let server = Server::new(close_reply);
        let client = server.abandoned().await;
        sleep(TIMEOUT * 10).await;
        let attached = server.state().attached - 1;
        assert!((1..=most).contains(&attached), "{close_reply:?}: attached {attached} times");
        client.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_does_not_wait_for_the_end_of_a_session_that_is_refused() {
    let server = Server::new(CloseReply::Refused);
    let client = server.abandoned().await;
    sleep(TIMEOUT / 4).await;
    let begun = Instant::now();
    client.close().await;
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn attempts_to_obtain_a_missing_proof_are_paced() {
    let server = Server::new(CloseReply::WantsCredentials);
    let client = server.connected().await;
    server.state().ended = true;
    server.state().is_mute = true;
    server.reset();
    client.state().reached(ConnectionState::Lost).await;
    client.state().reached(ConnectionState::Connected).await;
    let before = server.state().opened;
    sleep(TIMEOUT * 60).await;
    let opened = server.state().opened - before;
    assert!((2..100).contains(&opened), "opened {opened} sessions");
    server.state().is_mute = false;
    client.close().await;
}

/// Waits until the fake server has seen the expected state.
async fn until(server: &Server, seen: impl Fn(&State) -> bool) {
    let waiting = async {
        while !seen(&server.state()) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(TIMEOUT * 10, waiting).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_session_that_a_leader_without_followers_does_not_know_is_ended_at_the_next_leader() {
    let server = Server::new(CloseReply::WantsCredentials);
    let client = server.connected().await;
    server.state().isolated = true;
    server.reset();
    // The client moves to its next session, which cannot be opened.
    client.state().reached(ConnectionState::Lost).await;
    let long = sleep(TIMEOUT * 3);
    long.await;
    {
        let mut state = server.state();
        assert!(!state.ended && state.denied > 1 && state.writes == 0, "not proven yet: {state:?}");
        // The next leader gives every session its full timeout.
        (state.isolated, state.zxid, state.ends_at) = (false, 2 * TERM, Instant::now() + TIMEOUT);
    }
    until(&server, |state| state.ended).await;
    client.state().reached(ConnectionState::Connected).await;
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_session_is_proven_by_a_write_in_the_term_that_denied_it() {
    let server = Server::new(CloseReply::WantsCredentials);
    let client = server.connected().await;
    server.state().ended = true;
    server.reset();
    // Two links next to the client's: one before and one after the term is known.
    until(&server, |state| state.denied == 3 && state.writes == 2).await;
    sleep(TIMEOUT * 10).await;
    assert_eq!(server.asked(), (3, 2), "the end of the session is proven");
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_denial_by_an_earlier_term_proves_nothing() {
    let server = Server::new(CloseReply::WantsCredentials);
    let client = server.connected().await;
    server.state().ended = true;
    // The first term ends right after the first of these writes.
    server.state().next_term_after = Some(1);
    server.reset();
    // The answer of the first term must be confirmed by the second term.
    until(&server, |state| state.writes == 3).await;
    sleep(TIMEOUT * 10).await;
    assert_eq!(server.asked(), (4, 3));
    client.close().await;
}
