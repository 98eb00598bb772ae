use super::{assert_encodes, assert_needs_every_byte, frame};
use bytes::{BufMut, Bytes};
use docent_proto::{
    Acl, Create, CreateKind, CreateMode, MultiOp, Permissions, Request, RequestFrame, WatchKind, Watches, xid,
};

/// Returns every recorded request: its name, its number, and its meaning.
pub(super) fn expected() -> Vec<(&'static str, i32, Request)> {
    let mut expected = writes();
    expected.extend(reads());
    expected.extend(multis());
    expected.extend(other_requests());
    expected
}

fn create(kind: CreateKind, path: &str, data: Option<&'static str>, mode: CreateMode) -> Create {
    let data = data.map(|data| Bytes::from_static(data.as_bytes()));
    Create { kind, path: path.into(), data, acl: Acl::open().into(), flags: mode.flags() }
}

fn writes() -> Vec<(&'static str, i32, Request)> {
    use CreateKind::{Container, Plain, Ttl, WithStat};
    let create = |kind, path, data, mode| Request::Create(create(kind, path, data, mode));
    let set = |version| Request::SetData { path: "/golden/a".into(), data: Some("two".into()), version };
    let creator = vec![Acl { permissions: Permissions::ALL, scheme: "auth".into(), id: "".into() }];
    vec![
        ("create", 1, create(Plain, "/golden", Some("root"), CreateMode::Persistent)),
        ("create2", 2, create(WithStat, "/golden/a", Some("one"), CreateMode::Ephemeral)),
        ("create2-sequential", 3, create(WithStat, "/golden/s-", None, CreateMode::PersistentSequential)),
        ("create-container", 4, create(Container, "/golden/c", Some(""), CreateMode::Container)),
        ("create-ttl", 5, create(Ttl(60_000), "/golden/t", Some("ttl"), CreateMode::PersistentTtl)),
        ("create-existing", 6, create(WithStat, "/golden/a", Some(""), CreateMode::Persistent)),
        ("set-data", 11, set(0)),
        ("set-data-stale", 12, set(0)),
        ("delete", 16, Request::Delete { path: "/golden/missing".into(), version: -1 }),
        ("set-acl", 20, Request::SetAcl { path: "/golden/c".into(), acl: creator, version: 0 }),
    ]
}

fn reads() -> Vec<(&'static str, i32, Request)> {
    let exists = |path: &str, watch| Request::Exists { path: path.into(), watch };
    let get_data = |path: &str, watch| Request::GetData { path: path.into(), watch };
    let get_children = |path: &str| Request::GetChildren { path: path.into(), watch: true };
    vec![
        ("exists", 7, exists("/golden/a", false)),
        ("exists-missing", 8, exists("/golden/missing", true)),
        ("get-data", 10, get_data("/golden/a", true)),
        ("get-data-null", 13, get_data("/golden/s-0000000001", false)),
        ("get-children", 14, get_children("/golden")),
        ("get-children2", 15, Request::GetChildren2 { path: "/golden".into(), watch: false }),
        ("get-acl", 19, Request::GetAcl { path: "/golden".into() }),
        ("get-children-empty", 29, get_children("/golden/c")),
    ]
}

fn multis() -> Vec<(&'static str, i32, Request)> {
    let check = |version| MultiOp::Check { path: "/golden".into(), version };
    let set = |data: &'static str, version| MultiOp::SetData {
        path: "/golden/m".into(),
        data: Some(data.into()),
        version,
    };
    let delete = |path: &str| MultiOp::Delete { path: path.into(), version: -1 };
    let good = vec![
        MultiOp::Create(create(CreateKind::Plain, "/golden/m", Some("multi"), CreateMode::Ephemeral)),
        check(0),
        set("set", 0),
        delete("/golden/s-0000000001"),
        MultiOp::Create(create(CreateKind::Container, "/golden/mc", Some(""), CreateMode::Container)),
    ];
    let reads = vec![
        MultiOp::GetData { path: "/golden/m".into() },
        MultiOp::GetChildren { path: "/golden".into() },
        MultiOp::GetData { path: "/golden/none".into() },
    ];
    vec![
        ("multi", 22, Request::Multi(good)),
        ("multi-failing", 23, Request::Multi(vec![check(-1), set("", 9), delete("/golden/m")])),
        ("multi-read", 24, Request::MultiRead(reads)),
    ]
}

fn other_requests() -> Vec<(&'static str, i32, Request)> {
    let watches = Watches {
        relative_zxid: 15,
        data: vec!["/golden/m".into()],
        exist: vec!["/golden/x".into()],
        child: vec!["/golden/c".into()],
    };
    vec![
        ("auth", xid::AUTH, Request::Auth { scheme: "digest".into(), credentials: "user:secret".into() }),
        ("sync", 21, Request::Sync { path: "/golden".into() }),
        ("remove-watches", 28, Request::RemoveWatches { path: "/golden".into(), kind: WatchKind::Children }),
        // The Java client gives this request an ordinary number.
        ("set-watches", 30, Request::SetWatches(watches)),
        ("ping", xid::PING, Request::Ping),
        ("close-session", 32, Request::CloseSession),
    ]
}

#[test]
fn requests_are_read_and_written_as_recorded() {
    for (name, xid, request) in expected() {
        let file = format!("{name}-request");
        let read = RequestFrame::decode(frame(&file)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((read.xid, &read.request), (xid, &request), "{name}");
        assert_encodes(&file, |out| {
            out.put_i32(xid);
            out.put_i32(request.op() as i32);
            request.write(out);
        });
        let mut whole = bytes::BytesMut::new();
        read.encode(&mut whole);
        assert_eq!(&whole[4..], &frame(&file)[..], "{name}");
    }
}

#[test]
fn no_request_is_complete_before_its_last_byte() {
    for (name, ..) in expected() {
        assert_needs_every_byte(&format!("{name}-request"), RequestFrame::decode);
    }
}
