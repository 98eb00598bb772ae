//! Whatever a server sends, a client drops the link or tolerates the data. It continues and never panics.

use bytes::{BufMut, Bytes, BytesMut};
use docent::node::Children;
use docent::{Client, ConnectionState, Error};
use docent_proto::{OpCode, Request, Response, Stat};
use docent_tests::fake::{FakeLink, FakeServer, SESSION, body, connected, frame, reply};
use docent_tests::{PATIENCE, soon};
use futures_util::future::join_all;
use std::time::Duration;

/// A link that owes a reply is dropped after a third of this timeout, even if bytes trickle in.
const TIMEOUT_MS: i32 = 6_000;

fn client(server: &FakeServer) -> Client {
    server.client_builder().operation_timeout(PATIENCE).build().unwrap()
}

/// Answers listings until the client closes the link.
async fn serve(mut link: FakeLink) {
    while let Ok(request) = link.request().await {
        let listing = Response::Children { names: vec!["child".to_owned()], stat: Some(Stat::default()) };
        match request.request {
            Request::GetChildren2 { .. } => link.send(&reply(request.xid, 1, 0, &body(&listing))).await,
            Request::Ping => link.send(&reply(request.xid, 1, 0, &[])).await,
            _ => {}
        }
    }
}

/// Start of a reply to a listing.
fn children(count: i32, names: &[u8]) -> Vec<u8> {
    let mut out = BytesMut::new();
    out.put_i32(count);
    out.put_slice(names);
    out.to_vec()
}

fn event(kind: i32, state: i32, path: &[u8]) -> Vec<u8> {
    let mut out = BytesMut::new();
    out.put_i32(kind);
    out.put_i32(state);
    out.put_i32(i32::try_from(path.len()).unwrap());
    out.put_slice(path);
    reply(-1, -1, 0, &out)
}

/// Checks that the client's listing survives one bad link.
async fn keeps_working(name: &str, listing: impl Future<Output = Result<Children, Error>>) {
    let names = listing.await.unwrap_or_else(|error| panic!("{name}: {error:?}")).names;
    assert_eq!(names, ["child"], "{name}");
}

/// The first link sends `garbage(xid)` instead of the reply to a listing, and ends if `ends`. The client
/// closes the link and gets its listing over the next one.
async fn reconnects(name: &str, ends: bool, garbage: impl Fn(i32) -> Vec<u8>) {
    let server = FakeServer::start().await;
    let client = client(&server);
    let play = async {
        let mut first = server.attached(TIMEOUT_MS).await;
        let asked = first.request().await.unwrap();
        assert_eq!(asked.request.op(), OpCode::GetChildren2);
        first.send(&garbage(asked.xid)).await;
        if ends {
            first.end().await;
        } else {
            first.until_closed().await;
        }
        let mut second = server.link().await;
        let again = second.connect_request().await.unwrap();
        assert_eq!(again.session_id, SESSION, "{name}: the client must resume its session");
        second.send(&connected(TIMEOUT_MS, SESSION)).await;
        serve(second).await;
    };
    tokio::select! {
        () = soon(play) => panic!("{name}: the client closed a healthy link"),
        () = keeps_working(name, client.children("/")) => {}
    }
    assert_eq!(client.state().current().generation, 1, "{name}: the session was lost");
}

/// The link sends harmless `noise` and then answers.
async fn lives_with(name: &str, noise: impl Fn(i32) -> Vec<u8>) {
    let server = FakeServer::start().await;
    let client = client(&server);
    let play = async {
        let mut link = server.attached(TIMEOUT_MS).await;
        let asked = link.request().await.unwrap();
        link.send(&noise(asked.xid)).await;
        let names = [0, 0, 0, 5, b'c', b'h', b'i', b'l', b'd'];
        let listing = [children(1, &names), vec![0; 68]].concat();
        link.send(&reply(asked.xid, 1, 0, &listing)).await;
        serve(link).await;
    };
    tokio::select! {
        () = soon(play) => panic!("{name}: the client closed the link"),
        () = keeps_working(name, client.children("/")) => {}
    }
    assert_eq!(client.state().current().suspensions, 0, "{name}");
}

/// The first handshake is answered with `garbage`, and the client tries again.
async fn connects_again(name: &str, ends: bool, garbage: &[u8]) {
    let server = FakeServer::start().await;
    let client = client(&server);
    let play = async {
        let mut first = server.link().await;
        first.connect_request().await.unwrap();
        first.send(garbage).await;
        if ends {
            first.end().await;
        } else {
            first.until_closed().await;
        }
        serve(server.attached(TIMEOUT_MS).await).await;
    };
    tokio::select! {
        () = soon(play) => panic!("{name}: the client closed a healthy link"),
        () = keeps_working(name, client.children("/")) => {}
    }
}

fn raw_length(length: i32) -> Vec<u8> {
    length.to_be_bytes().to_vec()
}

#[tokio::test(start_paused = true)]
async fn an_invalid_reply_costs_the_link_and_not_the_session() {
    type Garbage = Box<dyn Fn(i32) -> Vec<u8>>;
    let mut cases: Vec<(&str, Garbage)> = Vec::new();
    let mut add = |name, garbage: Garbage| cases.push((name, garbage));
    add("a frame of length 0", Box::new(|_| raw_length(0)));
    add("a frame of length -1", Box::new(|_| raw_length(-1)));
    add("a frame of length 1", Box::new(|_| frame(&[0])));
    add("a frame of length 2^31 - 1", Box::new(|_| raw_length(i32::MAX)));
    add("a frame above the limit", Box::new(|_| raw_length(64 * 1024 * 1024 + 1)));
    add("a header cut short", Box::new(|xid| frame(&xid.to_be_bytes())));
    add("an unknown xid", Box::new(|xid| reply(xid + 1000, 1, 0, &children(0, &[0; 68]))));
    add("xid 0", Box::new(|_| reply(0, 1, 0, &[])));
    add("a negative xid", Box::new(|_| reply(-5, 1, 0, &[])));
    add("the smallest xid", Box::new(|_| reply(i32::MIN, 1, 0, &[])));
    add("a reply to no request", Box::new(|_| reply(-8, 1, 0, &[])));
    add("children counted -1, without a stat", Box::new(|xid| reply(xid, 1, 0, &children(-1, &[]))));
    add("children counted -2", Box::new(|xid| reply(xid, 1, 0, &children(-2, &[0; 68]))));
    add("children counted 2^31 - 1", Box::new(|xid| reply(xid, 1, 0, &children(i32::MAX, &[0; 68]))));
    add("a name of length 2^31 - 1", Box::new(|xid| reply(xid, 1, 0, &children(1, &raw_length(i32::MAX)))));
    add("a name in invalid UTF-8", Box::new(|xid| reply(xid, 1, 0, &children(1, &[0, 0, 0, 2, 0xc3, 0x28]))));
    add("a stat cut short", Box::new(|xid| reply(xid, 1, 0, &children(0, &[0; 67]))));
    add("an empty body", Box::new(|xid| reply(xid, 1, 0, &[])));
    add("an event of unknown kind", Box::new(|_| event(99, 3, b"/")));
    add("an event cut short", Box::new(|_| reply(-1, -1, 0, &[0, 0])));
    add("an event with a path in invalid UTF-8", Box::new(|_| event(1, 3, &[0xff])));
    add("the reply to a four-letter word", Box::new(|_| b"imok".to_vec()));
    add("text", Box::new(|_| b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()));
    add("a TLS alert", Box::new(|_| vec![0x15, 3, 3, 0, 2, 2, 40]));
    add(
        "a TLS alert within a frame",
        Box::new(|_| [&raw_length(30)[..], &[0x15, 3, 3, 0, 2, 2, 40]].concat()),
    );
    add("another handshake", Box::new(|_| connected(TIMEOUT_MS, SESSION)));
    add("a reply before its request", Box::new(|xid| reply(xid + 1, 1, 0, &[])));
    add("nothing", Box::new(|_| Vec::new()));
    let cases = cases.iter().map(|(name, garbage)| reconnects(name, false, garbage));
    soon(join_all(cases)).await;
}

#[tokio::test(start_paused = true)]
async fn a_truncated_reply_is_requested_again() {
    let whole = |xid| reply(xid, 1, 0, &children(1, &[&[0, 0, 0, 1, b'x'][..], &[0; 68]].concat()));
    let cuts = (0..whole(1).len()).map(async |cut| {
        reconnects(&format!("cut after {cut} bytes"), true, |xid| whole(xid)[..cut].to_vec()).await;
    });
    soon(join_all(cuts)).await;
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_reply_costs_the_link_and_not_the_session() {
    let server = FakeServer::start().await;
    let client = client(&server);
    let play = async {
        let mut first = server.attached(TIMEOUT_MS).await;
        let asked = first.request().await.unwrap();
        let once = reply(asked.xid, 1, 0, &[&children(1, &[0, 0, 0, 5])[..], b"child", &[0; 68]].concat());
        first.send(&[&once[..], &once].concat()).await;
        first.until_closed().await;
        serve(server.attached(TIMEOUT_MS).await).await;
    };
    let ask = async {
        keeps_working("after one reply", client.children("/")).await;
        // The link breaks at some later time.
        keeps_working("after the second reply", client.children("/")).await;
        let mut state = client.state();
        while state.current().suspensions == 0 {
            state.changed().await;
        }
        keeps_working("on the next link", client.children("/")).await;
    };
    tokio::select! {
        () = soon(play) => panic!("the client closed a healthy link"),
        () = soon(ask) => {}
    }
}

#[tokio::test(start_paused = true)]
async fn replies_in_the_wrong_order_cost_the_link_and_reach_no_wrong_caller() {
    let server = FakeServer::start().await;
    let client = client(&server);
    let play = async {
        let mut first = server.attached(TIMEOUT_MS).await;
        let (a, b) = (first.request().await.unwrap(), first.request().await.unwrap());
        let empty = |xid| reply(xid, 1, 0, &children(0, &[0; 68]));
        first.send(&[empty(b.xid), empty(a.xid)].concat()).await;
        first.until_closed().await;
        serve(server.attached(TIMEOUT_MS).await).await;
    };
    let ask = async {
        tokio::join!(
            keeps_working("first", client.children("/a")),
            keeps_working("second", client.children("/b"))
        );
    };
    tokio::select! {
        () = soon(play) => panic!("the client closed a healthy link"),
        () = soon(ask) => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_sends_a_byte_at_a_time_and_never_a_reply_costs_the_link() {
    let server = FakeServer::start().await;
    let client = client(&server);
    let play = async {
        let mut first = server.attached(TIMEOUT_MS).await;
        let _asked = first.request().await.unwrap();
        first.send(&raw_length(1000)).await;
        let trickle = async {
            loop {
                first.send(&[0]).await;
                // The bytes arrive slowly, but faster than a link is considered dead.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::select! {
            () = trickle => {}
            next = server.attached(TIMEOUT_MS) => serve(next).await,
        }
    };
    tokio::select! {
        () = soon(play) => panic!("the client closed a healthy link"),
        () = soon(keeps_working("trickle", client.children("/"))) => {}
    }
}

#[tokio::test(start_paused = true)]
async fn harmless_oddities_change_nothing() {
    type Noise = Box<dyn Fn(i32) -> Vec<u8>>;
    let flood = event(3, 3, b"/flood").repeat(10_000);
    let cases: Vec<(&str, Noise)> = vec![
        ("a ping reply without a ping", Box::new(|_| reply(-2, 1, 0, &[]))),
        ("many ping replies", Box::new(|_| reply(-2, 1, 0, &[]).repeat(1000))),
        ("a zxid that decreases", Box::new(|_| [reply(-2, 9, 0, &[]), reply(-2, 2, 0, &[])].concat())),
        ("a negative zxid", Box::new(|_| reply(-2, i64::MIN, 0, &[]))),
        ("an event without a watch", Box::new(|_| event(1, 3, b"/outside/of/everything"))),
        ("an event with an empty path", Box::new(|_| event(2, 3, b""))),
        ("an event with an invalid path", Box::new(|_| event(3, 3, b"../..//"))),
        ("an event of unknown state", Box::new(|_| event(3, 77, b"/x"))),
        ("a flood of events", Box::new(move |_| flood.clone())),
    ];
    soon(join_all(cases.iter().map(|(name, noise)| lives_with(name, noise)))).await;
}

#[tokio::test(start_paused = true)]
async fn an_invalid_handshake_is_retried() {
    let password = |length: i32| {
        let head: &[u8] = &[0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0x12, 0x34];
        frame(&[head, &length.to_be_bytes()].concat())
    };
    let cases = [
        ("a frame of length 0", raw_length(0)),
        ("a frame of length -1", raw_length(-1)),
        ("a frame of length 2^31 - 1", raw_length(i32::MAX)),
        ("a timeout of 0", connected(0, SESSION)),
        ("a timeout of -1", connected(-1, SESSION)),
        ("session 0", connected(TIMEOUT_MS, 0)),
        ("a password of length 2^31 - 1", password(i32::MAX)),
        ("a password of length -2", password(-2)),
        ("a reply", reply(1, 1, 0, &[])),
        ("an event", event(1, 3, b"/")),
        ("a TLS alert", vec![0x15, 3, 3, 0, 2, 2, 40]),
        ("text", b"This server is closed.".to_vec()),
    ];
    soon(join_all(cases.iter().map(|(name, garbage)| connects_again(name, false, garbage)))).await;
}

#[tokio::test(start_paused = true)]
async fn a_truncated_handshake_is_retried() {
    let whole = connected(TIMEOUT_MS, SESSION);
    let cases = (0..whole.len() - 1).map(|cut| {
        let (name, part) = (format!("cut after {cut} bytes"), &whole[..cut]);
        async move { connects_again(&name, true, part).await }
    });
    soon(join_all(cases)).await;
}

#[tokio::test(start_paused = true)]
async fn the_longest_possible_timeout_does_no_harm() {
    let server = FakeServer::start().await;
    let client = client(&server);
    let play = async { serve(server.attached(i32::MAX).await).await };
    tokio::select! {
        () = soon(play) => panic!("the client closed a healthy link"),
        () = soon(keeps_working("a timeout of 2^31 - 1", client.children("/"))) => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hands_out_another_session_ends_the_generation() {
    let server = FakeServer::start().await;
    let client = client(&server);
    let play = async {
        let mut first = server.attached(TIMEOUT_MS).await;
        let _asked = first.request().await.unwrap();
        first.end().await;
        let mut second = server.link().await;
        assert_eq!(second.connect_request().await.unwrap().session_id, SESSION);
        second.send(&connected(TIMEOUT_MS, SESSION + 1)).await;
        second.until_closed().await;
        let mut third = server.link().await;
        assert_eq!(
            third.connect_request().await.unwrap().session_id,
            0,
            "a new generation opens a new session"
        );
        third.send(&connected(TIMEOUT_MS, SESSION + 2)).await;
        serve(third).await;
    };
    tokio::select! {
        () = soon(play) => panic!("the client closed a healthy link"),
        () = soon(keeps_working("another session", client.children("/"))) => {}
    }
    let mut state = client.state();
    let connection = soon(state.reached(ConnectionState::Connected)).await.unwrap();
    assert_eq!((connection.generation, client.session_id()), (2, Some(SESSION + 2)));
}

#[tokio::test(start_paused = true)]
async fn a_reply_before_the_handshake_is_not_taken_for_one() {
    let server = FakeServer::start().await;
    let client = client(&server);
    let early = Bytes::from(reply(1, 7, 0, &children(0, &[0; 68])));
    let play = async {
        let mut first = server.link().await;
        first.send(&early).await;
        first.until_closed().await;
        serve(server.attached(TIMEOUT_MS).await).await;
    };
    tokio::select! {
        () = soon(play) => panic!("the client closed a healthy link"),
        () = soon(keeps_working("an early reply", client.children("/"))) => {}
    }
}
