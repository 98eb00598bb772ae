//! Input that clients should not send.

use crate::support::warnings::Warnings;
use crate::support::world::World;
use crate::support::{Peer, fresh, node};
use bytes::{BufMut, Bytes, BytesMut};
use docent_proto::{
    Acl, Code, ConnectRequest, Create, CreateMode, MultiOp, OpCode, Record, Request, RequestFrame, Watches,
    write_frame,
};
use docent_server::{Limits, Server};
use std::time::Duration;
use tokio::time::sleep;

fn frame(xid: i32, op: i32, body: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    write_frame(&mut out, |out| {
        out.put_i32(xid);
        out.put_i32(op);
        out.put_slice(body);
    });
    out.freeze()
}

#[tokio::test]
async fn an_unknown_operation_is_answered_as_unimplemented_and_ends_the_link() {
    let server = Server::start().await.unwrap();
    let mut peer = Peer::open(&server).await;
    peer.send_bytes(&frame(7, 1_000, b"")).await;
    let (header, body) = peer.reply().await.unwrap();
    assert_eq!((header.xid, header.zxid, header.code), (7, -1, Code::UNIMPLEMENTED));
    assert!(body.is_empty());
    assert!(peer.is_closed().await);
}

#[tokio::test]
async fn a_malformed_body_is_answered_and_the_link_stays_open() {
    let server = Server::start().await.unwrap();
    let mut peer = Peer::open(&server).await;
    for (op, takes_a_zxid) in [(OpCode::Create, true), (OpCode::Multi, true), (OpCode::GetData, false)] {
        let before = server.zxid();
        peer.send_bytes(&frame(7, op as i32, &[0xff, 0xff, 0xff, 0xf0])).await;
        let (header, _) = peer.reply().await.unwrap();
        assert_eq!((header.xid, header.code), (7, Code::MARSHALLING_ERROR));
        assert_eq!(server.zxid(), before + i64::from(takes_a_zxid), "{op:?}");
    }
    peer.call(Request::Ping).await.unwrap();
}

#[tokio::test]
async fn bytes_after_a_request_are_ignored() {
    let server = Server::start().await.unwrap();
    let mut peer = Peer::open(&server).await;
    peer.send_bytes(&frame(7, OpCode::Sync as i32, b"\0\0\0\x01/more")).await;
    assert_eq!(peer.reply().await.unwrap().0.code, Code::OK);
}

#[tokio::test]
async fn a_second_handshake_ends_the_link() {
    let server = Server::start().await.unwrap();
    let mut peer = Peer::open(&server).await;
    let mut out = BytesMut::new();
    write_frame(&mut out, |out| fresh(10_000).write(out));
    peer.send_bytes(&out).await;
    assert_eq!(peer.reply().await.unwrap().0.code, Code::UNIMPLEMENTED);
    assert!(peer.is_closed().await);
    assert_eq!(server.session_count(), 1);
}

#[tokio::test]
async fn garbage_ends_the_link_before_and_after_the_handshake() {
    let server = Server::start().await.unwrap();
    let garbage: [&[u8]; 8] = [
        &[0; 4],
        &[0xff; 4],
        b"\0\0\0\x01a",
        b"\0\0\0\x03abc",
        b"GET / HTTP/1.1\r\n\r\n",
        b"nope",
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc",
        &[0x7f, 0xff, 0xff, 0xff],
    ];
    for bytes in garbage {
        let mut before = Peer::raw(&server).await;
        before.send_bytes(bytes).await;
        assert!(before.is_closed().await, "{bytes:?}");
        let mut after = Peer::open(&server).await;
        after.send_bytes(bytes).await;
        assert!(after.is_closed().await, "{bytes:?}");
    }
}

/// Encodes a string in the wire format, with any length prefix.
fn text(length: i32, bytes: &[u8]) -> Vec<u8> {
    [&length.to_be_bytes(), bytes].concat()
}

fn create(path: &[u8], flags: i32) -> Vec<u8> {
    let length = i32::try_from(path.len()).expect("the path fits in a frame");
    let mut body = BytesMut::from(&text(length, path)[..]);
    body.put_i32(-1);
    body.put_i32(1);
    Acl::open()[0].write(&mut body);
    body.put_i32(flags);
    body.to_vec()
}

/// Returns the header of an operation in a multi.
fn inner(op: i32) -> Vec<u8> {
    [&op.to_be_bytes()[..], &[0], &(-1_i32).to_be_bytes()].concat()
}

/// Returns invalid requests, each with the code of its answer.
fn bad_requests() -> Vec<(&'static str, OpCode, Vec<u8>, Code)> {
    let huge = i32::MAX;
    let watched = |length, path: &[u8]| [text(length, path), vec![1]].concat();
    let create_op = [inner(OpCode::Create as i32), create(b"/m", 0)].concat();
    let paths = |count: i32, rest: &[u8]| [&[0; 8], &count.to_be_bytes()[..], rest].concat();
    vec![
        ("nothing at all", OpCode::GetData, vec![], Code::MARSHALLING_ERROR),
        ("a path of negative length", OpCode::GetData, watched(-7, b"/"), Code::MARSHALLING_ERROR),
        ("a path of huge length", OpCode::GetData, watched(huge, b"/"), Code::MARSHALLING_ERROR),
        ("a path that is not UTF-8", OpCode::Exists, watched(2, b"/\xff"), Code::NO_NODE),
        ("a boolean of 7", OpCode::Exists, [text(2, b"/x"), vec![7]].concat(), Code::NO_NODE),
        ("a path out of the tree", OpCode::Create, create(b"/../etc/passwd", 0), Code::NO_NODE),
        ("a path that goes up", OpCode::Create, create(b"/..", 0), Code::BAD_ARGUMENTS),
        ("a path with a zero", OpCode::Create, create(b"/a\0b", 0), Code::BAD_ARGUMENTS),
        ("no path", OpCode::Create, create(b"", 0), Code::BAD_ARGUMENTS),
        ("a path that is not absolute", OpCode::Create, create(b"a", 0), Code::BAD_ARGUMENTS),
        ("flags of 99", OpCode::Create, create(b"/f", 99), Code::BAD_ARGUMENTS),
        ("a mode with a time to live but no time", OpCode::Create, create(b"/t", 5), Code::UNIMPLEMENTED),
        (
            "data of huge length",
            OpCode::SetData,
            [text(1, b"/"), text(huge, b"")].concat(),
            Code::MARSHALLING_ERROR,
        ),
        ("lists of huge counts", OpCode::SetWatches, paths(huge, b""), Code::MARSHALLING_ERROR),
        ("a list that is null", OpCode::SetWatches, paths(-1, b""), Code::MARSHALLING_ERROR),
        (
            "a million empty paths",
            OpCode::SetWatches,
            paths(1_000_000, &[0; 1_000_000]),
            Code::MARSHALLING_ERROR,
        ),
        (
            "watches of an unknown kind",
            OpCode::RemoveWatches,
            [text(1, b"/"), text(9, b"")].concat(),
            Code::MARSHALLING_ERROR,
        ),
        (
            "a watch of an unknown mode",
            OpCode::AddWatch,
            [text(1, b"/"), text(9, b"")].concat(),
            Code::MARSHALLING_ERROR,
        ),
        (
            "an access control list of huge count",
            OpCode::SetAcl,
            [text(1, b"/"), text(huge, b"")].concat(),
            Code::MARSHALLING_ERROR,
        ),
        ("a multi without an end", OpCode::Multi, create_op.clone(), Code::MARSHALLING_ERROR),
        (
            "a multi in a multi",
            OpCode::Multi,
            [inner(OpCode::Multi as i32), create_op].concat(),
            Code::MARSHALLING_ERROR,
        ),
        ("a multi with an unknown operation", OpCode::Multi, inner(1_000), Code::MARSHALLING_ERROR),
        (
            "a multi that consists of headers only",
            OpCode::MultiRead,
            inner(OpCode::GetData as i32).repeat(50_000),
            Code::MARSHALLING_ERROR,
        ),
    ]
}

#[tokio::test]
async fn bad_requests_are_answered_and_affect_no_client() {
    let server = Server::start().await.unwrap();
    let (mut peer, mut bystander) = (Peer::open(&server).await, Peer::open(&server).await);
    for (name, op, body, expected) in bad_requests() {
        for xid in [7, 7, 0, i32::MIN, i32::MAX] {
            peer.send_bytes(&frame(xid, op as i32, &body)).await;
            let (header, _) = peer.reply().await.expect(name);
            assert_eq!((header.xid, header.code), (xid, expected), "{name}");
        }
        bystander.call(Request::Ping).await.expect(name);
    }
    assert_eq!((server.nodes().len(), server.session_count(), server.connection_count()), (0, 2, 2));
}

#[tokio::test]
async fn credentials_of_an_unknown_scheme_are_refused_and_close_the_link() {
    let server = Server::start().await.unwrap();
    for (scheme, credentials) in [("kerberos", "x"), ("super", ""), ("", "u:p"), ("world", "anyone")] {
        let mut peer = Peer::open(&server).await;
        let auth = Request::Auth { scheme: scheme.into(), credentials: credentials.into() };
        assert_eq!(peer.call(auth).await, Err(Code::AUTH_FAILED), "{scheme}");
        assert!(peer.is_closed().await, "{scheme}");
    }
}

#[tokio::test]
async fn a_truncated_request_affects_no_other_client() {
    let server = Server::start().await.unwrap();
    let mut bystander = Peer::open(&server).await;
    let watches = Watches { data: vec!["/a".into()], exist: vec!["/b".into()], ..Watches::default() };
    let requests = [
        Request::Create(node("/cut", CreateMode::Persistent)),
        Request::Multi(vec![MultiOp::Create(node("/cut", CreateMode::Persistent))]),
        Request::SetWatches(watches),
    ];
    for request in requests {
        let mut whole = BytesMut::new();
        RequestFrame { xid: 1, request }.encode(&mut whole);
        for length in 1..whole.len() {
            // A whole frame is announced, but the link ends before its end.
            let mut peer = Peer::open(&server).await;
            peer.send_bytes(&whole[..length]).await;
            drop(peer);
            // A complete frame that contains only part of a request.
            let mut peer = Peer::open(&server).await;
            let mut short = BytesMut::new();
            write_frame(&mut short, |out| out.put_slice(&whole[4..length.max(4)]));
            peer.send_bytes(&short).await;
            let code = peer.reply().await.map(|(header, _)| header.code);
            assert!(code.is_none_or(|code| code == Code::MARSHALLING_ERROR), "{length}: {code:?}");
        }
        bystander.call(Request::Ping).await.unwrap();
    }
    assert!(server.nodes().is_empty());
}

#[tokio::test]
async fn odd_handshakes_open_a_session_or_end_the_link() {
    let server = Server::start().await.unwrap();
    let victim = Peer::open(&server).await;
    let shake = async |request: ConnectRequest| Peer::handshake(&server, &request).await;
    for timeout_ms in [0, -1, i32::MIN, i32::MAX] {
        let peer = shake(fresh(timeout_ms)).await.unwrap();
        assert!((4_000..=40_000).contains(&peer.session.timeout_ms), "{timeout_ms}");
    }
    // A client that claims to have seen future transactions.
    assert!(shake(ConnectRequest { last_zxid_seen: i64::MAX, ..fresh(10_000) }).await.is_none());
    let wrong: [Bytes; 4] =
        [Bytes::new(), [0; 16].to_vec().into(), [1; 17].to_vec().into(), vec![0; 500_000].into()];
    for password in wrong {
        let mut thief = shake(ConnectRequest { password, ..victim.ticket() }).await.unwrap();
        assert_eq!((thief.session.session_id, thief.session.timeout_ms), (0, 0));
        thief.send(Request::CloseSession).await;
        assert!(thief.is_closed().await);
    }
    for session_id in [1, -1, i64::MIN] {
        let expired = shake(ConnectRequest { session_id, ..victim.ticket() }).await.unwrap();
        assert_eq!(expired.session.session_id, 0);
    }
    for length in [-7, 17, i32::MAX] {
        let mut raw = Peer::raw(&server).await;
        let mut out = BytesMut::new();
        write_frame(&mut out, |out| {
            out.put_slice(&[0; 4 + 8 + 4 + 8]);
            out.put_i32(length);
            out.put_slice(&[0; 16]);
        });
        raw.send_bytes(&out).await;
        assert!(raw.is_closed().await, "a password of length {length}");
    }
    let session = victim.session.session_id;
    assert!(server.session(session).is_some(), "a client without the password ended the session");
}

#[tokio::test]
async fn a_request_before_the_handshake_ends_the_link() {
    let server = Server::start().await.unwrap();
    for request in [Request::Ping, Request::CloseSession, Request::Create(node("/a", CreateMode::Persistent))]
    {
        let mut raw = Peer::raw(&server).await;
        raw.send(request).await;
        assert!(raw.is_closed().await);
    }
    assert_eq!((server.session_count(), server.nodes().len()), (0, 0));
}

#[tokio::test]
async fn a_four_letter_word_after_the_handshake_is_a_frame_that_is_too_long() {
    let server = Server::start().await.unwrap();
    for word in [&b"srvr"[..], b"ruok", b"mntr"] {
        let mut peer = Peer::open(&server).await;
        peer.send_bytes(word).await;
        assert!(peer.frame().await.is_none(), "a text was sent");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_drips_its_bytes_is_closed_after_the_handshake_timeout() {
    let warnings = Warnings::watch();
    let world = World::new(Server::builder()).await;
    let mut before = world.link();
    for byte in [0, 0, 0, 44, 0, 0, 0, 0, 0, 0] {
        before.send_bytes(&[byte]).await;
        sleep(Duration::from_secs(1)).await;
    }
    assert!(before.is_closed().await);
    warnings.assert_about("handshake", 10_000);
    // A session ends if none of its requests is complete in time, and its link ends with it.
    let mut after = world.peer(4_000).await;
    let opened_ms = world.server.time_ms();
    let ping = frame(-2, OpCode::Ping as i32, b"");
    for byte in &ping[..11] {
        after.send_bytes(&[*byte]).await;
        sleep(Duration::from_secs(1)).await;
    }
    assert!(after.is_closed().await);
    assert!(world.end_of(&after).await <= opened_ms + 11_000);
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_idle_links_leave_room_for_active_clients() {
    let world = World::new(Server::builder().limits(Limits::default().connections(1_000))).await;
    let mut bystander = world.peer(10_000).await;
    let mut links = Vec::new();
    for n in 0..10_000 {
        links.push(world.link());
        if n % 500 == 0 {
            bystander.call(Request::Ping).await.unwrap();
            world.peer(10_000).await.call(Request::Ping).await.unwrap();
        }
    }
    bystander.call(Request::Ping).await.unwrap();
    assert!(world.server.connection_count() <= 1_000);
}

#[tokio::test]
async fn long_and_deep_paths_work() {
    let server = Server::start().await.unwrap();
    let mut peer = Peer::open(&server).await;
    let long = format!("/{}", "l".repeat(1 << 16));
    peer.create(&long, CreateMode::Persistent).await.unwrap();
    let deep: Vec<String> = (1..=500).map(|depth| "/d".repeat(depth)).collect();
    for path in &deep {
        peer.create(path, CreateMode::Persistent).await.unwrap();
    }
    peer.create("/\u{e9}\u{4e16}", CreateMode::Persistent).await.unwrap();
    let named = |path: String| Create { path, ..node("/", CreateMode::Persistent) };
    for name in ["\u{1}", "\u{7f}", "\u{9f}", "\u{e000}", "\u{1f980}", "\u{fff0}"] {
        let refused = peer.call(Request::Create(named(format!("/{name}")))).await;
        assert_eq!(refused, Err(Code::BAD_ARGUMENTS), "{}", name.escape_unicode());
    }
}
