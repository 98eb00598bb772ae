//! Input that clients should not send.

mod support;

use bytes::{BufMut, Bytes, BytesMut};
use docent_proto::{Code, OpCode, Record, Request, write_frame};
use docent_server::Server;
use support::{Peer, fresh};

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
async fn a_body_that_cannot_be_read_is_answered_and_the_link_goes_on() {
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
async fn bytes_after_a_request_are_not_looked_at() {
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
    let garbage: [&[u8]; 5] =
        [&[0; 4], &[0xff; 4], b"\0\0\0\x03abc", b"GET / HTTP/1.1\r\n\r\n", &[0x7f, 0xff, 0xff, 0xff]];
    for bytes in garbage {
        let mut before = Peer::raw(&server).await;
        before.send_bytes(bytes).await;
        assert!(before.is_closed().await, "{bytes:?}");
        let mut after = Peer::open(&server).await;
        after.send_bytes(bytes).await;
        assert!(after.is_closed().await, "{bytes:?}");
    }
}
