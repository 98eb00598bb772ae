use super::{SESSION, assert_encodes, assert_needs_every_byte, frame, recorded};
use bytes::Bytes;
use docent_proto::{
    Acl, Code, DecodeError, EventKind, MultiResult, OpCode, Record, ReplyHeader, Response, Stat, WatchEvent,
    xid,
};

/// A recorded reply and its meaning.
pub(super) struct Expected {
    pub(super) name: &'static str,
    op: OpCode,
    header: ReplyHeader,
    response: Option<Response>,
}

/// Time at which the nodes were created, in milliseconds; the nodes' own times are relative to it.
const START: i64 = 1_795_247_517_000;
const HEADER: usize = 16;

/// Returns a stat whose node was created and last changed at these times, in milliseconds after [`START`].
fn stat([czxid, mzxid, pzxid]: [i64; 3], [ctime, mtime]: [i64; 2], versions: [i32; 3]) -> Stat {
    let [version, cversion, aversion] = versions;
    let (ctime, mtime) = (START + ctime, START + mtime);
    Stat { czxid, mzxid, pzxid, ctime, mtime, version, cversion, aversion, ..Stat::default() }
}

fn root(cversion: i32, num_children: i32, pzxid: i64) -> Stat {
    Stat { data_length: 4, num_children, ..stat([2, 2, pzxid], [121, 121], [0, cversion, 0]) }
}

fn ephemeral_a() -> Stat {
    Stat { data_length: 3, ephemeral_owner: SESSION, ..stat([3, 3, 3], [168, 168], [0, 0, 0]) }
}

fn sequential() -> Stat {
    stat([4, 4, 4], [177, 177], [0, 0, 0])
}

fn ephemeral_m() -> Stat {
    Stat { data_length: 3, ephemeral_owner: SESSION, ..stat([14, 14, 14], [359, 359], [1, 0, 0]) }
}

fn ok(name: &'static str, op: OpCode, [xid, zxid]: [i32; 2], response: Response) -> Expected {
    let header = ReplyHeader { xid, zxid: zxid.into(), code: Code::OK };
    Expected { name, op, header, response: Some(response) }
}

fn failed(name: &'static str, op: OpCode, [xid, zxid]: [i32; 2], code: Code) -> Expected {
    Expected { name, op, header: ReplyHeader { xid, zxid: zxid.into(), code }, response: None }
}

/// Returns every recorded reply.
pub(super) fn expected() -> Vec<Expected> {
    let mut expected = writes();
    expected.extend(reads());
    expected.extend(multis());
    expected.extend(empty());
    expected
}

fn writes() -> Vec<Expected> {
    let created = |path: &str, stat| Response::Created { path: path.into(), stat };
    let container = stat([5, 5, 5], [180, 180], [0, 0, 0]);
    let ttl = Stat { data_length: 3, ..stat([6, 6, 6], [184, 184], [0, 0, 0]) };
    let set = Stat { mzxid: 9, mtime: START + 261, version: 1, ..ephemeral_a() };
    vec![
        ok("create", OpCode::Create, [1, 2], created("/golden", None)),
        ok("create2", OpCode::Create2, [2, 3], created("/golden/a", Some(ephemeral_a()))),
        ok(
            "create2-sequential",
            OpCode::Create2,
            [3, 4],
            created("/golden/s-0000000001", Some(sequential())),
        ),
        ok("create-container", OpCode::CreateContainer, [4, 5], created("/golden/c", Some(container))),
        ok("create-ttl", OpCode::CreateTtl, [5, 6], created("/golden/t", Some(ttl))),
        failed("create-existing", OpCode::Create2, [6, 7], Code::NODE_EXISTS),
        ok("set-data", OpCode::SetData, [11, 9], Response::Stat(set)),
        failed("set-data-stale", OpCode::SetData, [12, 10], Code::BAD_VERSION),
        ok("set-acl", OpCode::SetAcl, [20, 13], Response::Stat(Stat { aversion: 1, ..container })),
    ]
}

fn reads() -> Vec<Expected> {
    let names = ["missing", "a", "s-0000000001", "c", "t"].map(String::from).to_vec();
    let children = |names, stat| Response::Children { names, stat };
    let one = Response::Data { data: Some(Bytes::from_static(b"one")), stat: ephemeral_a() };
    let null = Response::Data { data: None, stat: sequential() };
    vec![
        ok("exists", OpCode::Exists, [7, 7], Response::Stat(ephemeral_a())),
        failed("exists-missing", OpCode::Exists, [8, 7], Code::NO_NODE),
        ok("get-data", OpCode::GetData, [10, 8], one),
        ok("get-data-null", OpCode::GetData, [13, 10], null),
        ok("get-children", OpCode::GetChildren, [14, 10], children(names.clone(), None)),
        ok("get-children2", OpCode::GetChildren2, [15, 10], children(names, Some(root(5, 5, 8)))),
        ok("get-acl", OpCode::GetAcl, [19, 12], Response::Acl { acl: Acl::open(), stat: root(7, 3, 12) }),
        ok("get-children-empty", OpCode::GetChildren, [29, 15], children(Vec::new(), None)),
        ok("sync", OpCode::Sync, [21, 13], Response::Synced { path: "/golden".into() }),
    ]
}

fn multis() -> Vec<Expected> {
    let container = stat([14, 14, 14], [359, 359], [0, 0, 0]);
    let written = vec![
        MultiResult::Created { path: "/golden/m".into(), stat: None },
        MultiResult::Checked,
        MultiResult::Set(ephemeral_m().into()),
        MultiResult::Deleted,
        MultiResult::Created { path: "/golden/mc".into(), stat: Some(container.into()) },
    ];
    let refused = [Code::OK, Code::BAD_VERSION, Code::RUNTIME_INCONSISTENCY].map(MultiResult::Failed);
    let read = vec![
        MultiResult::Data { data: Some(Bytes::from_static(b"set")), stat: ephemeral_m().into() },
        MultiResult::Children(["c", "t", "m", "mc"].map(String::from).to_vec()),
        MultiResult::Failed(Code::NO_NODE),
    ];
    vec![
        ok("multi", OpCode::Multi, [22, 14], Response::Multi(written)),
        // The header reports success; the body shows that nothing was applied.
        ok("multi-failing", OpCode::Multi, [23, 15], Response::Multi(refused.to_vec())),
        ok("multi-read", OpCode::MultiRead, [24, 15], Response::Multi(read)),
    ]
}

fn empty() -> Vec<Expected> {
    vec![
        ok("delete", OpCode::Delete, [16, 11], Response::Empty),
        ok("auth", OpCode::Auth, [xid::AUTH, 0], Response::Empty),
        ok("remove-watches", OpCode::RemoveWatches, [28, 15], Response::Empty),
        ok("set-watches", OpCode::SetWatches, [30, 15], Response::Empty),
        ok("ping", OpCode::Ping, [xid::PING, 15], Response::Empty),
        ok("close-session", OpCode::CloseSession, [32, 16], Response::Empty),
    ]
}

/// Returns every recorded watch event.
pub(super) fn events() -> Vec<(&'static str, WatchEvent)> {
    let event = |kind, path: &str| WatchEvent { kind, path: path.into() };
    vec![
        ("created", event(EventKind::Created, "/golden/missing")),
        ("data-changed", event(EventKind::DataChanged, "/golden/a")),
        ("children-changed", event(EventKind::ChildrenChanged, "/golden")),
        ("deleted", event(EventKind::Deleted, "/golden/m")),
    ]
}

fn decode(op: OpCode, frame: &Bytes) -> Result<(ReplyHeader, Option<Response>), DecodeError> {
    let mut body = frame.clone();
    let header = ReplyHeader::decode(body.split_to(HEADER.min(body.len())))?;
    let response = if header.code == Code::OK { Some(Response::decode(op, body)?) } else { None };
    Ok((header, response))
}

#[test]
fn replies_are_read_and_written_as_recorded() {
    for Expected { name, op, header, response } in expected() {
        let file = format!("{name}-response");
        let read = decode(op, &frame(&file)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(read == (header, response.clone()), "{name}: {read:?} in {:x?}", recorded(&file));
        assert_encodes(&file, |out| {
            header.write(out);
            if let Some(response) = response {
                response.write(out);
            }
        });
    }
}

#[test]
fn no_reply_is_complete_before_its_last_byte() {
    for Expected { name, op, .. } in expected() {
        assert_needs_every_byte(&format!("{name}-response"), |part| decode(op, &part));
    }
}

#[test]
fn events_are_read_and_written_as_recorded() {
    for (name, event) in events() {
        let file = format!("event-{name}");
        let header = ReplyHeader { xid: xid::NOTIFICATION, zxid: -1, code: Code::OK };
        let mut body = frame(&file);
        assert_eq!(ReplyHeader::decode(body.split_to(HEADER)), Ok(header), "{name}");
        assert_eq!(WatchEvent::decode(body.clone()), Ok(event.clone()), "{name}");
        assert_encodes(&file, |out| {
            header.write(out);
            event.write(out);
        });
        for length in 0..body.len() {
            assert!(WatchEvent::decode(body.slice(..length)).is_err(), "{name} after {length} bytes");
        }
    }
}
