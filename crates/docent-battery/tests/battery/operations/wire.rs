//! Frames that no library of this workspace sends: nulls, odd booleans, bytes that are not text.

use super::TIMEOUT;
use bytes::{BufMut, Bytes, BytesMut};
use docent_battery::{Backend, RawClient, RawError, TestServer, both_backends_in_real_time};
use docent_proto::{Acl, Code, OpCode, Permissions, Reader, Record, ReplyHeader, Request, Response};

const NULL: &[u8] = &[0xff; 4];
const FIRST_XID: i32 = 77;

fn text(text: impl AsRef<[u8]>) -> Vec<u8> {
    let text = text.as_ref();
    [&i32::try_from(text.len()).unwrap().to_be_bytes(), text].concat()
}

fn int(value: i32) -> Vec<u8> {
    value.to_be_bytes().to_vec()
}

fn list(items: &[Vec<u8>]) -> Vec<u8> {
    [int(items.len().try_into().unwrap()), items.concat()].concat()
}

fn open() -> Vec<u8> {
    list(&[entry(&text("world"), &text("anyone"))])
}

fn entry(scheme: &[u8], id: &[u8]) -> Vec<u8> {
    [&int(31), scheme, id].concat()
}

/// A client that sends arbitrary bytes.
struct Link {
    client: RawClient,
    events: Vec<Bytes>,
}

impl Link {
    async fn of(server: &TestServer) -> Self {
        let client = RawClient::open(server.address(), TIMEOUT).await.unwrap();
        Self { client, events: Vec::new() }
    }

    /// Sends a request and waits for its reply. Returns `None` if the link is closed instead.
    async fn ask(&mut self, op: OpCode, body: &[&[u8]]) -> Option<(ReplyHeader, Bytes)> {
        let frame = [&int(FIRST_XID), &int(op as i32), &body.concat()[..]].concat();
        self.client.send_frame(&frame).await.unwrap();
        loop {
            let frame = match self.client.frame().await {
                Ok(frame) => frame,
                Err(RawError::Io(_)) => return None,
                Err(other) => panic!("{other}"),
            };
            let mut reader = Reader::new(frame);
            let header = ReplyHeader::read(&mut reader).unwrap();
            match header.xid {
                FIRST_XID => return Some((header, reader.into_rest())),
                _ => self.events.push(reader.into_rest()),
            }
        }
    }

    /// Returns the result of a request, and by how much it advanced the transaction id.
    async fn result(&mut self, op: OpCode, body: &[&[u8]]) -> (Code, i64) {
        let (before, _) = self.ask(OpCode::Exists, &[&text("/"), &[0]]).await.unwrap();
        let (header, _) = self.ask(op, body).await.unwrap();
        (header.code, header.zxid - before.zxid)
    }

    async fn code(&mut self, op: OpCode, body: &[&[u8]]) -> Code {
        self.ask(op, body).await.unwrap().0.code
    }

    async fn acl(&mut self, path: &str) -> Vec<Acl> {
        let (header, body) = self.ask(OpCode::GetAcl, &[&text(path)]).await.unwrap();
        assert_eq!(header.code, Code::OK);
        match Response::decode(OpCode::GetAcl, body).unwrap() {
            Response::Acl { acl, .. } => acl,
            other => panic!("{other:?}"),
        }
    }

    /// Authenticates as `user`, with a scheme or without.
    async fn authenticate(&mut self, scheme: &[u8], credentials: &[u8]) -> Option<Code> {
        self.ask(OpCode::Auth, &[&int(0), scheme, credentials]).await.map(|(header, _)| header.code)
    }
}

fn digest(id: &str) -> Acl {
    Acl { permissions: Permissions::ALL, scheme: "digest".into(), id: id.to_owned().into() }
}

both_backends_in_real_time! {
    async fn a_null_path_is_an_error_or_no_path(backend: Backend) {
        let server = backend.start_own().await;
        let mut link = Link::of(&server).await;
        let (unread, bad, fine) = (Code::MARSHALLING_ERROR, Code::BAD_ARGUMENTS, Code::OK);
        let (acl, any) = (open(), int(-1));
        for (op, rest, expected, transactions) in [
            (OpCode::Create, &[NULL, &acl, &int(0)].concat()[..], unread, 1),
            (OpCode::Delete, &any, unread, 1),
            (OpCode::SetData, &[NULL, &any].concat(), bad, 1),
            (OpCode::SetAcl, &[acl.clone(), any.clone()].concat(), bad, 1),
            (OpCode::Check, &any, bad, 1),
            (OpCode::Exists, &[0], unread, 0),
            (OpCode::GetData, &[0], unread, 0),
            (OpCode::GetAcl, &[], unread, 0),
            (OpCode::GetChildren, &[0], unread, 0),
            (OpCode::GetChildren2, &[0], unread, 0),
            (OpCode::GetAllChildrenNumber, &[], unread, 0),
            (OpCode::CheckWatches, &int(3), unread, 0),
            (OpCode::RemoveWatches, &int(3), Code::NO_WATCHER, 0),
            (OpCode::Sync, &[], fine, 0),
            (OpCode::GetEphemerals, &[], fine, 0),
            (OpCode::AddWatch, &int(0), fine, 0),
        ] {
            assert_eq!(link.result(op, &[NULL, rest]).await, (expected, transactions), "{op:?}");
        }
    }

    async fn a_body_that_breaks_off_is_answered_and_a_longer_one_is_fine(backend: Backend) {
        let server = backend.start_own().await;
        let mut link = Link::of(&server).await;
        for (op, transactions) in [
            (OpCode::Create, 1),
            (OpCode::Create2, 1),
            (OpCode::CreateContainer, 1),
            (OpCode::CreateTtl, 1),
            (OpCode::Delete, 1),
            (OpCode::SetData, 1),
            (OpCode::SetAcl, 1),
            (OpCode::Check, 1),
            (OpCode::Multi, 1),
            (OpCode::Reconfig, 0),
            (OpCode::Exists, 0),
            (OpCode::GetChildren2, 0),
            (OpCode::MultiRead, 0),
            (OpCode::Sync, 0),
            (OpCode::SetWatches, 0),
            (OpCode::SetWatches2, 0),
            (OpCode::AddWatch, 0),
            (OpCode::CheckWatches, 0),
            (OpCode::RemoveWatches, 0),
            (OpCode::GetEphemerals, 0),
            (OpCode::GetAllChildrenNumber, 0),
        ] {
            assert_eq!(link.result(op, &[]).await, (Code::MARSHALLING_ERROR, transactions), "{op:?}");
        }
        assert_eq!(link.code(OpCode::Exists, &[&text("/"), &[0], b"more"]).await, Code::OK);
        assert_eq!(link.code(OpCode::WhoAmI, &[b"more"]).await, Code::OK);
        for op in [OpCode::Auth, OpCode::Sasl] {
            assert_eq!(Link::of(&server).await.ask(op, &[]).await, None, "{op:?}");
        }
    }

    async fn an_unknown_kind_or_mode_of_watches_is_an_error(backend: Backend) {
        let server = backend.start().await;
        let mut link = Link::of(&server).await;
        for (op, numbers) in [
            (OpCode::CheckWatches, [0, 4, 5, -1]),
            (OpCode::RemoveWatches, [0, 4, 5, -1]),
            (OpCode::AddWatch, [2, 3, 4, -1]),
        ] {
            for number in numbers {
                let code = link.code(op, &[&text(server.root()), &int(number)]).await;
                assert_eq!(code, Code::MARSHALLING_ERROR, "{op:?} {number}");
            }
        }
    }

    async fn every_byte_but_0_is_true(backend: Backend) {
        let server = backend.start().await;
        let mut link = Link::of(&server).await;
        let path = text(server.path("a"));
        assert_eq!(link.code(OpCode::Exists, &[&path, &[7]]).await, Code::NO_NODE);
        assert_eq!(link.code(OpCode::Create, &[&path, NULL, &open(), &int(0)]).await, Code::OK);
        assert_eq!(link.events.len(), 1);
        let end_of_multi = [&int(-1), &[0x80][..], &int(-1)].concat();
        assert_eq!(link.code(OpCode::Multi, &[&end_of_multi]).await, Code::OK);
    }

    async fn the_flag_for_a_read_only_server_may_be_any_byte(backend: Backend) {
        let server = backend.start().await;
        let mut connect = BytesMut::new();
        docent_proto::ConnectRequest { read_only: None, ..docent_proto::ConnectRequest::new_session(10_000) }
        .write(&mut connect);
        for flag in [0, 1, 2, 0xff] {
            let mut frame = connect.clone();
            frame.put_u8(flag);
            let mut stream = tokio::net::TcpStream::connect(server.address()).await.unwrap();
            let length = int(frame.len().try_into().unwrap());
            tokio::io::AsyncWriteExt::write_all(&mut stream, &[&length[..], &frame].concat()).await.unwrap();
            let mut answer = [0; 41];
            tokio::io::AsyncReadExt::read_exact(&mut stream, &mut answer).await.unwrap();
            let answer = Bytes::copy_from_slice(&answer[4..]);
            let answer = docent_proto::ConnectResponse::decode(answer).unwrap();
            assert_eq!((answer.timeout_ms, answer.read_only), (10_000, Some(false)), "{flag}");
        }
    }

    async fn a_null_list_of_paths_is_an_error_and_a_negative_one_is_empty(backend: Backend) {
        let server = backend.start().await;
        let mut link = Link::of(&server).await;
        let (since, none) = (0_i64.to_be_bytes(), list(&[]));
        let unread = Code::MARSHALLING_ERROR;
        for (list, code) in [(NULL, unread), (&int(-2), Code::OK), (&none, Code::OK)] {
            assert_eq!(link.code(OpCode::SetWatches, &[&since, &none, &none, list]).await, code);
            let all = [&since[..], &none, &none, &none, &none, list];
            assert_eq!(link.code(OpCode::SetWatches2, &all).await, code);
        }
        let null_path = [&int(1), NULL].concat();
        assert_eq!(link.code(OpCode::SetWatches, &[&since, &none, &none, &null_path]).await, unread);
        for length in [-2, i32::MIN, i32::MAX] {
            assert_eq!(link.code(OpCode::Exists, &[&int(length), &[0]]).await, unread);
        }
    }

    async fn null_in_an_acl_is_interpreted_by_the_scheme(backend: Backend) {
        let server = backend.start().await;
        let mut link = Link::of(&server).await;
        let (invalid, unread) = (Code::INVALID_ACL, Code::MARSHALLING_ERROR);
        for (number, (acl, code)) in [
            (NULL.to_vec(), invalid),
            (int(-7), invalid),
            (list(&[]), invalid),
            (list(&[entry(NULL, &text("anyone"))]), invalid),
            (list(&[entry(&text(""), &text("anyone"))]), invalid),
            (list(&[entry(&text("world"), &text(""))]), invalid),
            (list(&[entry(&text("world"), NULL)]), unread),
            (list(&[entry(&text("digest"), NULL)]), unread),
            (list(&[entry(&text("ip"), NULL)]), unread),
            (list(&[entry(&text("sasl"), NULL)]), invalid),
            (list(&[entry(&text("auth"), NULL)]), invalid),
            (list(&[entry(&text("super"), &text(""))]), invalid),
        ]
        .into_iter()
        .enumerate()
        {
            let path = text(server.path(&format!("n{number}")));
            assert_eq!(link.code(OpCode::Create, &[&path, NULL, &acl, &int(0)]).await, code, "{number}");
            let set = [&text(server.root())[..], &acl, &int(-1)];
            assert_eq!(link.code(OpCode::SetAcl, &set).await, code, "{number}");
        }
        // The list of a client that writes the empty text as null, as kazoo does.
        assert_eq!(link.authenticate(&text("digest"), &text("u:p")).await, Some(Code::OK));
        for (name, id) in [("null", NULL.to_vec()), ("empty", text("")), ("any", text("other"))] {
            let (path, acl) = (server.path(name), list(&[entry(&text("auth"), &id)]));
            assert_eq!(link.code(OpCode::Create, &[&text(&path), NULL, &acl, &int(0)]).await, Code::OK);
            assert_eq!(link.acl(&path).await, [digest("u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ=")]);
        }
    }

    async fn bytes_that_are_not_utf_8_are_replaced(backend: Backend) {
        let server = backend.start().await;
        let mut link = Link::of(&server).await;
        assert_eq!(link.code(OpCode::Exists, &[&text(b"/\xff"), &[0]]).await, Code::NO_NODE);
        assert_eq!(link.code(OpCode::Create, &[&text(b"/\xff"), NULL, &open(), &int(0)]).await, Code::BAD_ARGUMENTS);
        let path = server.path("a");
        let ids: [&[u8]; 5] = [b"\xff:x", b"\xed\xa0\x80:x", b"\xed\xa0:x", b"\xe2\x82:x", b"\xf0\x9f\x98:x"];
        let entries: Vec<_> = ids.iter().map(|id| entry(&text("digest"), &text(id))).collect();
        let acl = list(&[entries, vec![entry(&text("world"), &text("anyone"))]].concat());
        assert_eq!(link.code(OpCode::Create, &[&text(&path), NULL, &acl, &int(0)]).await, Code::OK);
        // Equal entries are stored once.
        let shown = link.acl(&path).await;
        assert_eq!(shown, [digest("\u{fffd}:x"), Acl::open().remove(0)]);
        let header = link.ask(OpCode::AddWatch, &[&text(b"/\xff\xfe"), &int(0)]).await.unwrap().0;
        assert_eq!(header.code, Code::OK);
        let replaced = text("/\u{fffd}\u{fffd}");
        assert_eq!(link.code(OpCode::RemoveWatches, &[&replaced, &int(3)]).await, Code::OK);
    }

    async fn credentials_are_refused_together_with_their_link(backend: Backend) {
        let server = backend.start().await;
        let refused = Some(Code::AUTH_FAILED);
        for (scheme, credentials, answer) in [
            (NULL.to_vec(), text("u:p"), refused),
            (text(""), text("u:p"), refused),
            (text("world"), text("anyone"), refused),
            (text("super"), text("u:p"), refused),
            (text("digest"), NULL.to_vec(), refused),
            (text("ip"), NULL.to_vec(), Some(Code::OK)),
            (text("digest"), text(""), Some(Code::OK)),
            (text("digest"), text(b"\xff"), Some(Code::OK)),
        ] {
            let mut link = Link::of(&server).await;
            let case = format!("{scheme:?} {credentials:?}");
            assert_eq!(link.authenticate(&scheme, &credentials).await, answer, "{case}");
            let goes_on = link.ask(OpCode::Exists, &[&text("/"), &[0]]).await.is_some();
            assert_eq!(goes_on, answer == Some(Code::OK), "{case}");
        }
    }

    async fn an_address_in_an_acl_may_have_a_prefix_length(backend: Backend) {
        let server = backend.start().await;
        let mut peer = super::Peer::of(&server).await;
        let [hidden, shown] = [Some(Code::NO_AUTH), None];
        for (number, (id, result)) in [
            ("127.0.0.1", shown),
            ("127.0.0.2", hidden),
            ("+127.0.00.1", shown),
            ("127.0.0.1/32", shown),
            ("127.0.0.3/31", hidden),
            ("127.0.0.3/30", shown),
            ("126.0.0.0/7", shown),
            ("10.0.0.0/+8", hidden),
            ("10.0.0.0/0", shown),
            ("127.0.0.1/33", Some(Code::INVALID_ACL)),
            ("127.0.0.1/-1", Some(Code::INVALID_ACL)),
            ("127.0.0.1/", Some(Code::INVALID_ACL)),
            ("127.0.0.1/8/1", Some(Code::INVALID_ACL)),
            ("127.0.1", Some(Code::INVALID_ACL)),
            ("127.0.0.256", Some(Code::INVALID_ACL)),
            ("::1", Some(Code::INVALID_ACL)),
            ("localhost", Some(Code::INVALID_ACL)),
        ]
        .into_iter()
        .enumerate()
        {
            let path = server.path(&format!("n{number}"));
            let acl = vec![Acl { permissions: Permissions::READ, scheme: "ip".into(), id: id.into() }];
            let mode = docent_proto::CreateMode::Persistent;
            let create = docent_proto::Create::new(path.clone(), Bytes::new(), acl, mode, 0);
            let answer = match peer.call(Request::Create(create)).await {
                Ok(_) => peer.call(Request::GetData { path, watch: false }).await,
                refused => refused,
            };
            assert_eq!(answer.err(), result, "{id}");
        }
    }
}
