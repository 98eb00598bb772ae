//! Read-only mode of a server without a quorum, on the embedded server and on a real one.

use bytes::{BufMut, Bytes, BytesMut};
use docent::server::Server;
use docent_battery::{RawClient, RawError, RealServer};
use docent_proto::{
    Acl, Code, ConnectRequest, ConnectResponse, Create, CreateMode, MultiOp, OpCode, Reader, Record,
    ReplyHeader, Request,
};
use docent_tests::soon;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

#[tokio::test]
async fn an_embedded_server_is_read_only_like_a_real_one() {
    let server = Server::start().await.unwrap();
    server.set_read_only(true);
    soon(behaves(server.local_addr())).await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_real_server_is_read_only() {
    let server = RealServer::start_read_only().await.unwrap();
    soon(behaves(server.address())).await;
}

fn request(read_only: Option<bool>) -> ConnectRequest {
    let password = Bytes::from_static(&[0; 16]);
    ConnectRequest { last_zxid_seen: 0, timeout_ms: 10_000, session_id: 0, password, read_only }
}

fn ticket(session: &ConnectResponse) -> ConnectRequest {
    let password = session.password.clone();
    ConnectRequest { session_id: session.session_id, password, ..request(Some(true)) }
}

async fn behaves(server: SocketAddr) {
    assert_eq!(word(server, "isro").await, "ro");
    assert!(word(server, "srvr").await.contains("Mode: read-only\n"));
    assert!(word(server, "mntr").await.contains("zk_server_state\tread-only\n"));
    who_is_served(server).await;
    what_is_refused(server).await;
    sessions_of_the_mode(server).await;
}

async fn word(server: SocketAddr, word: &'static str) -> String {
    let asked = tokio::task::spawn_blocking(move || {
        let (mut stream, mut answer) = (TcpStream::connect(server).unwrap(), String::new());
        stream.write_all(word.as_bytes()).unwrap();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    asked.await.unwrap()
}

async fn who_is_served(server: SocketAddr) {
    let ahead = ConnectRequest { last_zxid_seen: i64::MAX, ..request(Some(true)) };
    for refused in [request(None), request(Some(false)), ahead] {
        let error = RawClient::attach(server, &refused).await.unwrap_err();
        assert!(matches!(error, RawError::Io(_)), "{refused:?}: {error}");
    }
    let client = RawClient::attach(server, &request(Some(true))).await.unwrap();
    assert_eq!(client.session().read_only, Some(true));
}

fn create(path: &str) -> Request {
    Request::Create(Create::new(path.into(), Bytes::new(), Acl::open(), CreateMode::Persistent, 0))
}

async fn what_is_refused(server: SocketAddr) {
    let mut client = RawClient::attach(server, &request(Some(true))).await.unwrap();
    let path = || "/".to_owned();
    let zxid = client.ask(Request::Ping).await.unwrap().header.zxid;
    for request in [
        create("/a"),
        create("no path"),
        Request::SetData { path: path(), data: None, version: 9 },
        Request::Delete { path: "/none".into(), version: -1 },
        Request::Check { path: path(), version: -1 },
        Request::Multi(vec![MultiOp::Check { path: path(), version: -1 }]),
        Request::Sync { path: path() },
    ] {
        let op = request.op();
        let header = client.ask(request).await.unwrap().header;
        assert_eq!((header.code, header.zxid), (Code::NOT_READ_ONLY, zxid), "{op:?}");
    }
    for request in [
        Request::GetData { path: path(), watch: true },
        Request::GetChildren2 { path: path(), watch: true },
        Request::Auth { scheme: "digest".into(), credentials: Bytes::from_static(b"u:p") },
        Request::WhoAmI,
        Request::Ping,
    ] {
        let op = request.op();
        assert_eq!(client.ask(request).await.unwrap().header.code, Code::OK, "{op:?}");
    }
    // The server does not decode the body of a write, or of an operation that only servers send.
    for op in [OpCode::Create as i32, OpCode::SetAcl as i32, OpCode::Reconfig as i32, 20] {
        let mut body = BytesMut::new();
        body.put_i32(99);
        body.put_i32(op);
        client.send_frame(&body).await.unwrap();
        let header = ReplyHeader::read(&mut Reader::new(client.frame().await.unwrap())).unwrap();
        assert_eq!((header.xid, header.code), (99, Code::NOT_READ_ONLY), "{op}");
    }
}

async fn sessions_of_the_mode(server: SocketAddr) {
    let client = RawClient::attach(server, &request(Some(true))).await.unwrap();
    let ticket = ticket(client.session());
    let mut moved = RawClient::attach(server, &ticket).await.unwrap();
    assert_eq!(moved.session().session_id, ticket.session_id, "another link must resume the session");
    moved.call(Request::GetData { path: "/".into(), watch: false }).await.unwrap();
    moved.call(Request::CloseSession).await.unwrap();
    let wrong = ConnectRequest { session_id: 17, ..ticket.clone() };
    for gone in [ticket, wrong] {
        let error = RawClient::attach(server, &gone).await.unwrap_err();
        assert!(matches!(error, RawError::Gone(_)), "{error}");
    }
}
