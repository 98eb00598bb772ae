use bytes::Bytes;
use docent_proto::{
    Acl, ClientInfo, Code, ConnectRequest, ConnectResponse, Create, CreateKind, EventKind, MultiOp,
    MultiResult, OpCode, Permissions, ReplyHeader, Request, Response, Stat, WatchEvent, WatchKind, WatchMode,
    Watches,
};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};

fn text() -> impl Strategy<Value = String> {
    "\\PC{0,12}"
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    vec(text(), 0..5)
}

fn bytes() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..40).prop_map(Bytes::from)
}

fn data() -> impl Strategy<Value = Option<Bytes>> {
    proptest::option::of(bytes())
}

pub(crate) fn acl() -> impl Strategy<Value = Acl> {
    (any::<i32>(), text(), text()).prop_map(|(permissions, scheme, id)| Acl {
        permissions: Permissions(permissions),
        scheme: scheme.into(),
        id: id.into(),
    })
}

pub(crate) fn stat() -> impl Strategy<Value = Stat> {
    (any::<[i64; 6]>(), any::<[i32; 5]>()).prop_map(|(long, short)| Stat {
        czxid: long[0],
        mzxid: long[1],
        ctime: long[2],
        mtime: long[3],
        version: short[0],
        cversion: short[1],
        aversion: short[2],
        ephemeral_owner: long[4],
        data_length: short[3],
        num_children: short[4],
        pzxid: long[5],
    })
}

pub(crate) fn connect_request() -> impl Strategy<Value = ConnectRequest> {
    (any::<i64>(), any::<i32>(), any::<i64>(), bytes(), any::<Option<bool>>()).prop_map(
        |(last_zxid_seen, timeout_ms, session_id, password, read_only)| ConnectRequest {
            last_zxid_seen,
            timeout_ms,
            session_id,
            password,
            read_only,
        },
    )
}

pub(crate) fn connect_response() -> impl Strategy<Value = ConnectResponse> {
    (any::<i32>(), any::<i64>(), bytes(), any::<Option<bool>>()).prop_map(
        |(timeout_ms, session_id, password, read_only)| ConnectResponse {
            timeout_ms,
            session_id,
            password,
            read_only,
        },
    )
}

pub(crate) fn header() -> impl Strategy<Value = ReplyHeader> {
    (any::<i32>(), any::<i64>(), any::<i32>()).prop_map(|(xid, zxid, code)| ReplyHeader {
        xid,
        zxid,
        code: Code(code),
    })
}

pub(crate) fn event() -> impl Strategy<Value = WatchEvent> {
    let kind = prop_oneof![
        Just(EventKind::Created),
        Just(EventKind::Deleted),
        Just(EventKind::DataChanged),
        Just(EventKind::ChildrenChanged),
    ];
    (kind, text()).prop_map(|(kind, path)| WatchEvent { kind, path })
}

fn create() -> impl Strategy<Value = Create> {
    let kind = prop_oneof![
        Just(CreateKind::Plain),
        Just(CreateKind::WithStat),
        Just(CreateKind::Container),
        any::<i64>().prop_map(CreateKind::Ttl),
    ];
    (kind, text(), data(), vec(acl(), 0..4), any::<i32>()).prop_map(|(kind, path, data, acl, flags)| Create {
        kind,
        path,
        data,
        acl: acl.into(),
        flags,
    })
}

fn multi_op() -> impl Strategy<Value = MultiOp> {
    prop_oneof![
        create().prop_map(MultiOp::Create),
        (text(), any::<i32>()).prop_map(|(path, version)| MultiOp::Delete { path, version }),
        (text(), data(), any::<i32>()).prop_map(|(path, data, version)| MultiOp::SetData {
            path,
            data,
            version
        }),
        (text(), any::<i32>()).prop_map(|(path, version)| MultiOp::Check { path, version }),
        text().prop_map(|path| MultiOp::GetData { path }),
        text().prop_map(|path| MultiOp::GetChildren { path }),
    ]
}

fn watches() -> impl Strategy<Value = Watches> {
    (any::<i64>(), texts(), texts(), texts()).prop_map(|(relative_zxid, data, exist, child)| Watches {
        relative_zxid,
        data,
        exist,
        child,
    })
}

pub(crate) fn request() -> impl Strategy<Value = Request> {
    prop_oneof![node_request(), session_request(), watch_request(), query()]
}

fn node_request() -> impl Strategy<Value = Request> {
    let watched = || (text(), any::<bool>());
    prop_oneof![
        create().prop_map(Request::Create),
        (text(), any::<i32>()).prop_map(|(path, version)| Request::Delete { path, version }),
        watched().prop_map(|(path, watch)| Request::Exists { path, watch }),
        watched().prop_map(|(path, watch)| Request::GetData { path, watch }),
        (text(), data(), any::<i32>()).prop_map(|(path, data, version)| Request::SetData {
            path,
            data,
            version
        }),
        (text(), any::<i32>()).prop_map(|(path, version)| Request::Check { path, version }),
        text().prop_map(|path| Request::GetAcl { path }),
        (text(), vec(acl(), 0..4), any::<i32>()).prop_map(|(path, acl, version)| Request::SetAcl {
            path,
            acl,
            version
        }),
        watched().prop_map(|(path, watch)| Request::GetChildren { path, watch }),
        watched().prop_map(|(path, watch)| Request::GetChildren2 { path, watch }),
    ]
}

fn session_request() -> impl Strategy<Value = Request> {
    prop_oneof![
        text().prop_map(|path| Request::Sync { path }),
        Just(Request::Ping),
        vec(multi_op(), 0..5).prop_map(Request::Multi),
        vec(multi_op(), 0..5).prop_map(Request::MultiRead),
        (text(), bytes()).prop_map(|(scheme, credentials)| Request::Auth { scheme, credentials }),
        data().prop_map(|token| Request::Sasl { token }),
        Just(Request::CloseSession),
    ]
}

fn watch_request() -> impl Strategy<Value = Request> {
    let kind = || prop_oneof![Just(WatchKind::Children), Just(WatchKind::Data), Just(WatchKind::Any)];
    let mode = prop_oneof![Just(WatchMode::Persistent), Just(WatchMode::PersistentRecursive)];
    prop_oneof![
        (text(), kind()).prop_map(|(path, kind)| Request::CheckWatches { path, kind }),
        (text(), kind()).prop_map(|(path, kind)| Request::RemoveWatches { path, kind }),
        (text(), mode).prop_map(|(path, mode)| Request::AddWatch { path, mode }),
        watches().prop_map(Request::SetWatches),
        (watches(), texts(), texts()).prop_map(|(once, persistent, recursive)| Request::SetWatches2 {
            once,
            persistent,
            recursive
        }),
    ]
}

fn query() -> impl Strategy<Value = Request> {
    let servers = || proptest::option::of(text());
    prop_oneof![
        text().prop_map(|prefix| Request::GetEphemerals { prefix }),
        text().prop_map(|path| Request::GetAllChildrenNumber { path }),
        Just(Request::WhoAmI),
        (servers(), servers(), servers(), any::<i64>()).prop_map(|(joining, leaving, members, config)| {
            Request::Reconfig { joining, leaving, members, config }
        }),
    ]
}

fn multi_result() -> impl Strategy<Value = MultiResult> {
    prop_oneof![
        (text(), proptest::option::of(stat().prop_map(Box::new)))
            .prop_map(|(path, stat)| MultiResult::Created { path, stat }),
        Just(MultiResult::Deleted),
        stat().prop_map(|stat| MultiResult::Set(stat.into())),
        Just(MultiResult::Checked),
        (data(), stat()).prop_map(|(data, stat)| MultiResult::Data { data, stat: stat.into() }),
        texts().prop_map(MultiResult::Children),
        any::<i32>().prop_map(|code| MultiResult::Failed(Code(code))),
    ]
}

/// A reply's body, and an operation that has such a reply.
pub(crate) fn response() -> impl Strategy<Value = (OpCode, Response)> {
    let one_of = |ops: &'static [OpCode]| proptest::sample::select(ops);
    prop_oneof![
        one_of(&[OpCode::Delete, OpCode::Ping, OpCode::Auth, OpCode::CloseSession])
            .prop_map(|op| (op, Response::Empty)),
        one_of(&[OpCode::SetWatches, OpCode::SetWatches2, OpCode::CheckWatches, OpCode::RemoveWatches,])
            .prop_map(|op| (op, Response::Empty)),
        text().prop_map(|path| (OpCode::Create, Response::Created { path, stat: None })),
        (one_of(&[OpCode::Create2, OpCode::CreateContainer, OpCode::CreateTtl]), text(), stat())
            .prop_map(|(op, path, stat)| (op, Response::Created { path, stat: Some(stat) })),
        (one_of(&[OpCode::Exists, OpCode::SetData, OpCode::SetAcl]), stat())
            .prop_map(|(op, stat)| (op, Response::Stat(stat))),
        (one_of(&[OpCode::GetData, OpCode::Reconfig]), data(), stat())
            .prop_map(|(op, data, stat)| (op, Response::Data { data, stat })),
        texts().prop_map(|names| (OpCode::GetChildren, Response::Children { names, stat: None })),
        (texts(), stat())
            .prop_map(|(names, stat)| (OpCode::GetChildren2, Response::Children { names, stat: Some(stat) })),
        (vec(acl(), 0..4), stat()).prop_map(|(acl, stat)| (OpCode::GetAcl, Response::Acl { acl, stat })),
        text().prop_map(|path| (OpCode::Sync, Response::Synced { path })),
        (one_of(&[OpCode::Multi, OpCode::MultiRead]), vec(multi_result(), 0..5))
            .prop_map(|(op, results)| (op, Response::Multi(results))),
        any::<i32>().prop_map(|code| (OpCode::AddWatch, Response::WatchAdded(Code(code)))),
        data().prop_map(|token| (OpCode::Sasl, Response::Sasl { token })),
        texts().prop_map(|paths| (OpCode::GetEphemerals, Response::Ephemerals(paths))),
        any::<i32>().prop_map(|count| (OpCode::GetAllChildrenNumber, Response::Count(count))),
        vec(client(), 0..4).prop_map(|clients| (OpCode::WhoAmI, Response::Clients(clients))),
    ]
}

fn client() -> impl Strategy<Value = ClientInfo> {
    (text(), text()).prop_map(|(scheme, user)| ClientInfo { scheme, user })
}
