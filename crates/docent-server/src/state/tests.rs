use super::event::Event;
use super::{Effects, Handshake, Origin, Staleness, State};
use crate::Limits;
use crate::config::Config;
use bytes::Bytes;
use docent_proto::{
    Acl, Code, ConnectRequest, Create, CreateKind, CreateMode, EventKind, MultiOp, MultiResult, Request,
    Response, Stat, WatchKind, WatchMode, Watches,
};

/// A state with sessions, for tests that call it directly.
struct Bench {
    state: State,
    events: Vec<Event>,
    now: i64,
}

impl Bench {
    fn new() -> Self {
        Self::with(Config::default())
    }

    fn with(config: Config) -> Self {
        Self { state: State::new(config, Origin { zxid: 0, session: 0 }), events: Vec::new(), now: 0 }
    }

    fn session(&mut self) -> i64 {
        let request = ConnectRequest { read_only: None, ..ConnectRequest::new_session(10_000) };
        match self.state.connect(&request, (4_000, 40_000), [127, 0, 0, 1].into(), self.now) {
            Handshake::Attached(response) => response.session_id,
            other => panic!("{other:?}"),
        }
    }

    fn call(&mut self, session: i64, request: &Request) -> Result<Response, Code> {
        let mut effects = Effects::default();
        let reply = self.state.apply(session, request, self.now, &mut effects);
        self.events.append(&mut effects.events.into_vec());
        reply.result
    }

    fn create(&mut self, session: i64, path: &str, mode: CreateMode) -> Result<String, Code> {
        match self.call(session, &Request::Create(create(path, mode)))? {
            Response::Created { path, .. } => Ok(path),
            other => panic!("{other:?}"),
        }
    }

    fn delete(&mut self, session: i64, path: &str) -> Result<Response, Code> {
        self.call(session, &Request::Delete { path: path.into(), version: -1 })
    }

    fn exists(&mut self, session: i64, path: &str, watch: bool) -> Result<Response, Code> {
        self.call(session, &Request::Exists { path: path.into(), watch })
    }

    fn watch_children(&mut self, session: i64, path: &str) {
        let request = Request::GetChildren { path: path.into(), watch: true };
        assert!(matches!(self.call(session, &request), Ok(Response::Children { .. })));
    }

    fn count_below(&mut self, session: i64, path: &str) -> i32 {
        match self.call(session, &Request::GetAllChildrenNumber { path: path.into() }) {
            Ok(Response::Count(count)) => count,
            other => panic!("{other:?}"),
        }
    }

    fn stat(&self, path: &str) -> Stat {
        self.state.node_info(path).expect("the node does not exist").stat
    }

    fn multi(&mut self, session: i64, ops: Vec<MultiOp>) -> Vec<MultiResult> {
        match self.call(session, &Request::Multi(ops)) {
            Ok(Response::Multi(results)) => results,
            other => panic!("{other:?}"),
        }
    }

    /// Returns the events since the last call.
    fn take_events(&mut self) -> Vec<(i64, EventKind, String)> {
        let take_events = self.events.drain(..);
        take_events.map(|Event { session, kind, path, .. }| (session, kind, path.to_string())).collect()
    }
}

fn create(path: &str, mode: CreateMode) -> Create {
    Create::new(path.into(), Bytes::new(), Acl::open(), mode, 0)
}

fn check(path: &str, version: i32) -> MultiOp {
    MultiOp::Check { path: path.into(), version }
}

#[test]
fn the_tree_of_a_new_server_is_that_of_zookeeper() {
    let bench = Bench::new();
    let root = bench.stat("/");
    assert_eq!((root.cversion, root.num_children, root.pzxid), (-1, 1, 0));
    assert_eq!(bench.stat("/zookeeper").cversion, -2);
    assert_eq!(bench.stat("/zookeeper/config").aversion, -1);
    assert!(bench.state.paths().is_empty());
}

#[test]
fn a_stat_reports_the_transactions_and_times_of_changes() {
    let mut bench = Bench::new();
    let session = bench.session();
    bench.now = 5;
    bench.create(session, "/a", CreateMode::Persistent).unwrap();
    bench.now = 7;
    let data = Some(Bytes::from_static(b"data"));
    bench.call(session, &Request::SetData { path: "/a".into(), data, version: 0 }).unwrap();
    bench.create(session, "/a/b", CreateMode::Ephemeral).unwrap();
    bench.delete(session, "/a/b").unwrap();
    bench.call(session, &Request::SetAcl { path: "/a".into(), acl: Acl::open(), version: 0 }).unwrap();
    let expected = Stat {
        czxid: 2,
        mzxid: 3,
        ctime: 5,
        mtime: 7,
        version: 1,
        cversion: 2,
        aversion: 1,
        ephemeral_owner: 0,
        data_length: 4,
        num_children: 0,
        pzxid: 5,
    };
    assert_eq!(bench.stat("/a"), expected);
}

#[test]
fn a_container_has_no_owner() {
    let mut bench = Bench::new();
    let session = bench.session();
    bench.create(session, "/container", CreateMode::Container).unwrap();
    bench.create(session, "/ephemeral", CreateMode::Ephemeral).unwrap();
    assert_eq!(bench.stat("/container").ephemeral_owner, 0);
    assert_eq!(bench.stat("/ephemeral").ephemeral_owner, session);
}

#[test]
fn failed_writes_take_up_transaction_numbers_and_reads_do_not() {
    let mut bench = Bench::new();
    let session = bench.session();
    assert_eq!(bench.delete(session, "/none"), Err(Code::NO_NODE));
    assert_eq!(bench.state.zxid(), 2);
    bench.multi(session, vec![check("/none", -1)]);
    assert_eq!(bench.state.zxid(), 3);
    assert_eq!(bench.exists(session, "/none", false), Err(Code::NO_NODE));
    bench.call(session, &Request::Ping).unwrap();
    assert_eq!(bench.state.zxid(), 3);
}

#[test]
fn sequential_names_count_the_children_ever_created() {
    let mut bench = Bench::new();
    let session = bench.session();
    bench.create(session, "/q", CreateMode::Persistent).unwrap();
    let names: Vec<String> =
        (0..3).map(|_| bench.create(session, "/q/n-", CreateMode::PersistentSequential).unwrap()).collect();
    assert_eq!(names, ["/q/n-0000000000", "/q/n-0000000001", "/q/n-0000000002"]);
    bench.delete(session, "/q/n-0000000002").unwrap();
    bench.create(session, "/q/plain", CreateMode::Persistent).unwrap();
    assert_eq!(bench.create(session, "/q/", CreateMode::EphemeralSequential), Ok("/q/0000000004".to_owned()));
}

#[test]
fn the_sequence_sticks_at_its_end_and_goes_negative_inside_a_multi() {
    let mut bench = Bench::new();
    let session = bench.session();
    bench.create(session, "/q", CreateMode::Persistent).unwrap();
    assert!(bench.state.skip_numbers("/q", i32::MAX));
    let ops = ["/q/a-", "/q/b-"].map(|path| {
        MultiOp::Create(Create { kind: CreateKind::Plain, ..create(path, CreateMode::PersistentSequential) })
    });
    let results = bench.multi(session, ops.to_vec());
    let names = ["/q/a-2147483647", "/q/b--2147483648"]
        .map(|path| MultiResult::Created { path: path.to_owned(), stat: None });
    assert_eq!(results, names);
    for name in ["/q/c-", "/q/d-"] {
        let path = bench.create(session, name, CreateMode::PersistentSequential).unwrap();
        assert_eq!(path, format!("{name}2147483647"));
    }
    assert_eq!(
        bench.create(session, "/q/d-", CreateMode::PersistentSequential),
        Err(Code::NODE_EXISTS),
        "the same number is assigned again"
    );
}

#[test]
fn of_several_errors_a_create_reports_the_one_that_zookeeper_does() {
    let mut bench = Bench::new();
    let session = bench.session();
    bench.create(session, "/ephemeral", CreateMode::Ephemeral).unwrap();
    let mut without_acl = create("/none/child", CreateMode::Persistent);
    without_acl.acl = [].into();
    let mut unknown_mode = without_acl.clone();
    unknown_mode.flags = 99;
    assert_eq!(bench.call(session, &Request::Create(unknown_mode)), Err(Code::BAD_ARGUMENTS));
    assert_eq!(bench.call(session, &Request::Create(without_acl)), Err(Code::INVALID_ACL));
    for (path, mode, code) in [
        ("/a", CreateMode::PersistentTtl, Code::UNIMPLEMENTED),
        ("a", CreateMode::Persistent, Code::BAD_ARGUMENTS),
        ("/none/child/", CreateMode::Persistent, Code::NO_NODE),
        ("/ephemeral/", CreateMode::Persistent, Code::BAD_ARGUMENTS),
        ("/ephemeral/child", CreateMode::Persistent, Code::NO_CHILDREN_FOR_EPHEMERALS),
        ("/ephemeral", CreateMode::Persistent, Code::NODE_EXISTS),
        ("/\u{1f600}", CreateMode::Persistent, Code::BAD_ARGUMENTS),
        ("/", CreateMode::Persistent, Code::NODE_EXISTS),
    ] {
        assert_eq!(bench.create(session, path, mode), Err(code), "{path}");
    }
}

#[test]
fn the_nodes_of_the_server_itself_cannot_be_deleted() {
    let mut bench = Bench::new();
    let session = bench.session();
    for path in ["/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"] {
        assert_eq!(bench.delete(session, path), Err(Code::BAD_ARGUMENTS), "{path}");
    }
}

#[test]
fn a_multi_applies_all_of_its_operations_under_one_number() {
    let mut bench = Bench::new();
    let session = bench.session();
    let ops = vec![
        MultiOp::Create(create("/a", CreateMode::Persistent)),
        MultiOp::Create(create("/a/b", CreateMode::Container)),
        MultiOp::SetData { path: "/a".into(), data: None, version: 0 },
        check("/a", 1),
        MultiOp::Delete { path: "/a/b".into(), version: 0 },
    ];
    let results = bench.multi(session, ops);
    // In a multi only containers are answered with a stat.
    assert!(matches!(&results[0], MultiResult::Created { path, stat: None } if path == "/a"));
    assert!(matches!(&results[1], MultiResult::Created { path, stat: Some(_) } if path == "/a/b"));
    assert!(matches!(&results[2], MultiResult::Set(stat) if stat.version == 1 && stat.num_children == 1));
    assert_eq!(results[3..], [MultiResult::Checked, MultiResult::Deleted]);
    let stat = bench.stat("/a");
    assert_eq!((stat.czxid, stat.mzxid, stat.pzxid, bench.state.zxid()), (2, 2, 2, 2));
}

#[test]
fn a_failed_multi_changes_nothing_and_names_the_operation() {
    let mut bench = Bench::new();
    let session = bench.session();
    let a = MultiOp::Create(create("/a", CreateMode::Persistent));
    let results = bench.multi(session, vec![a.clone(), check("/a", 7), a]);
    let failed = [Code::OK, Code::BAD_VERSION, Code::RUNTIME_INCONSISTENCY].map(MultiResult::Failed);
    assert_eq!(results, failed);
    assert!(bench.state.paths().is_empty());
    assert_eq!(bench.multi(session, Vec::new()), []);
}

#[test]
fn a_multi_read_fails_operation_by_operation() {
    let mut bench = Bench::new();
    let session = bench.session();
    let ops = vec![MultiOp::GetData { path: "/none".into() }, MultiOp::GetChildren { path: "/".into() }];
    let Ok(Response::Multi(results)) = bench.call(session, &Request::MultiRead(ops)) else { panic!() };
    let expected = [MultiResult::Failed(Code::NO_NODE), MultiResult::Children(vec!["zookeeper".into()])];
    assert_eq!(results, expected);
}

#[test]
fn a_watch_fires_once() {
    let mut bench = Bench::new();
    let (watcher, writer) = (bench.session(), bench.session());
    assert_eq!(bench.exists(watcher, "/a", true), Err(Code::NO_NODE));
    bench.create(writer, "/a", CreateMode::Persistent).unwrap();
    bench.delete(writer, "/a").unwrap();
    assert_eq!(bench.take_events(), [(watcher, EventKind::Created, "/a".into())]);
    assert_eq!(bench.state.watch_count(), 0);
}

#[test]
fn a_session_that_watches_data_and_children_is_notified_of_a_deletion_once() {
    let mut bench = Bench::new();
    let (both, children, writer) = (bench.session(), bench.session(), bench.session());
    bench.create(writer, "/a", CreateMode::Persistent).unwrap();
    bench.exists(both, "/a", true).unwrap();
    bench.watch_children(both, "/a");
    bench.watch_children(children, "/a");
    bench.watch_children(children, "/");
    bench.delete(writer, "/a").unwrap();
    let expected = [
        (both, EventKind::Deleted, "/a".to_owned()),
        (children, EventKind::Deleted, "/a".to_owned()),
        (children, EventKind::ChildrenChanged, "/".to_owned()),
    ];
    assert_eq!(bench.take_events(), expected);
    assert_eq!(bench.state.watch_count(), 0);
}

#[test]
fn reads_of_missing_nodes_leave_no_watch_except_exists() {
    let mut bench = Bench::new();
    let session = bench.session();
    for request in [
        Request::GetData { path: "/none".into(), watch: true },
        Request::GetChildren { path: "/none".into(), watch: true },
    ] {
        assert_eq!(bench.call(session, &request), Err(Code::NO_NODE));
    }
    assert_eq!(bench.state.watch_count(), 0);
}

#[test]
fn a_session_that_may_not_read_a_node_is_not_notified_of_it() {
    let mut bench = Bench::new();
    let (watcher, owner) = (bench.session(), bench.session());
    bench.create(owner, "/a", CreateMode::Persistent).unwrap();
    bench.exists(watcher, "/a", true).unwrap();
    let mut acl = Acl::open();
    acl[0].permissions = docent_proto::Permissions::WRITE;
    bench.call(owner, &Request::SetAcl { path: "/a".into(), acl, version: -1 }).unwrap();
    bench.delete(owner, "/a").unwrap();
    assert_eq!(bench.take_events(), []);
    assert_eq!(bench.state.watch_count(), 0);
}

#[test]
fn watches_are_removed_by_kind() {
    let mut bench = Bench::new();
    let session = bench.session();
    let remove = |kind| Request::RemoveWatches { path: "/".into(), kind };
    assert_eq!(bench.call(session, &remove(WatchKind::Any)), Err(Code::NO_WATCHER));
    bench.exists(session, "/", true).unwrap();
    bench.watch_children(session, "/");
    bench.call(session, &remove(WatchKind::Data)).unwrap();
    assert_eq!(bench.call(session, &remove(WatchKind::Data)), Err(Code::NO_WATCHER));
    bench.exists(session, "/", true).unwrap();
    bench.call(session, &remove(WatchKind::Any)).unwrap();
    assert_eq!(bench.state.watch_count(), 0);
}

#[test]
fn watches_set_again_fire_for_what_changed_and_wait_for_the_rest() {
    let mut bench = Bench::new();
    let session = bench.session();
    for path in ["/old", "/changed", "/gone"] {
        bench.create(session, path, CreateMode::Persistent).unwrap();
    }
    let relative_zxid = bench.state.zxid();
    bench.call(session, &Request::SetData { path: "/changed".into(), data: None, version: -1 }).unwrap();
    bench.create(session, "/changed/child", CreateMode::Persistent).unwrap();
    bench.create(session, "/new", CreateMode::Persistent).unwrap();
    bench.delete(session, "/gone").unwrap();
    let paths = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
    let watches = Watches {
        relative_zxid,
        data: paths(&["/old", "/changed", "/gone"]),
        exist: paths(&["/new", "/none"]),
        child: paths(&["/old", "/changed", "/gone"]),
    };
    bench.call(session, &Request::SetWatches(watches)).unwrap();
    let expected = [
        (EventKind::DataChanged, "/changed"),
        (EventKind::Deleted, "/gone"),
        (EventKind::Created, "/new"),
        (EventKind::ChildrenChanged, "/changed"),
        (EventKind::Deleted, "/gone"),
    ];
    assert_eq!(bench.take_events(), expected.map(|(kind, path)| (session, kind, path.to_owned())));
    assert_eq!(bench.state.watch_count(), 3);
}

#[test]
fn closing_a_session_deletes_its_ephemeral_nodes_and_nothing_else() {
    let mut bench = Bench::new();
    let (closing, other) = (bench.session(), bench.session());
    bench.create(closing, "/keep", CreateMode::Persistent).unwrap();
    bench.create(closing, "/keep/mine", CreateMode::EphemeralSequential).unwrap();
    bench.create(other, "/theirs", CreateMode::Ephemeral).unwrap();
    bench.watch_children(other, "/keep");
    bench.call(closing, &Request::CloseSession).unwrap();
    assert_eq!(bench.state.paths(), ["/keep", "/theirs"]);
    assert_eq!(bench.take_events(), [(other, EventKind::ChildrenChanged, "/keep".into())]);
    assert_eq!(bench.state.session_ids(), [other]);
}

#[test]
fn a_session_in_one_tick_outlives_its_timeout_and_ends_with_the_tick() {
    let mut bench = Bench::new();
    let session = bench.session();
    // The timeout is 10 s from time 0 and the tick is 2 s, so the tick in which the session expires ends at
    // 12 s.
    assert!(bench.state.overdue(11_999).is_empty());
    assert_eq!(bench.state.overdue(12_000), [session]);
}

#[test]
fn watches_of_a_session_with_too_many_events_are_removed_within_the_transaction() {
    let limits = Limits::default().events_per_transaction(3);
    let mut bench = Bench::with(Config { limits, ..Config::default() });
    let sessions = [(); 5].map(|()| bench.session());
    for session in sessions {
        let request = Request::AddWatch { path: "/".into(), mode: WatchMode::Persistent };
        bench.call(session, &request).unwrap();
    }
    assert_eq!(bench.state.watch_count(), 10);
    let writer = bench.session();
    let set = |_| MultiOp::SetData { path: "/".into(), data: None, version: -1 };
    bench.multi(writer, (0..2).map(set).collect());
    assert_eq!(bench.take_events().len(), 3);
    assert_eq!(bench.state.watch_count(), 0);
}

#[test]
fn finding_missed_changes_visits_each_change_and_no_node() {
    let mut bench = Bench::new();
    let session = bench.session();
    for n in 0..200 {
        bench.create(session, &format!("/n{n}"), CreateMode::Persistent).expect("the node can be created");
    }
    bench.state.keep_past(1_000);
    let behind = Staleness { lag_ms: 1_000, seen: bench.state.zxid() };
    for n in 0..3 {
        bench.create(session, &format!("/late{n}"), CreateMode::Persistent).expect("the node can be created");
    }
    let mut effects = Effects::default();
    let request = Request::AddWatch { path: "/".into(), mode: WatchMode::PersistentRecursive };
    bench
        .state
        .apply_stale(behind, session, &request, bench.now, &mut effects)
        .result
        .expect("the watch can be set");
    assert_eq!(effects.later.as_slice().len(), 3);
    assert_eq!(effects.work(), 2 * 3 + 3, "a create changes two nodes, and causes one event");
}

#[test]
fn nodes_below_a_node_are_counted_whatever_is_beside_it() {
    let mut bench = Bench::new();
    let session = bench.session();
    for path in ["/a", "/a/b", "/a/b/c", "/a/d", "/ab", "/ab/c", "/b"] {
        bench.create(session, path, CreateMode::Persistent).unwrap();
    }
    let few = [("/a", 3), ("/a/b", 1), ("/a/b/c", 0), ("/ab", 1), ("/b", 0), ("/", 10), ("", 11)];
    assert_eq!(few.map(|(path, _)| (path, bench.count_below(session, path))), few);
    // Among many nodes, those below a node are found by their names.
    for n in 0..100 {
        bench.create(session, &format!("/b/{n}"), CreateMode::Persistent).unwrap();
    }
    let many = [("/a", 3), ("/a/b", 1), ("/a/b/c", 0), ("/ab", 1), ("/b", 100), ("/", 110), ("", 111)];
    assert_eq!(many.map(|(path, _)| (path, bench.count_below(session, path))), many);
}

#[test]
fn ephemeral_nodes_are_listed_by_path_prefix() {
    let mut bench = Bench::new();
    let session = bench.session();
    for path in ["/a", "/ab", "/b"] {
        bench.create(session, path, CreateMode::Ephemeral).unwrap();
    }
    for (prefix, paths) in [
        ("", &["/a", "/ab", "/b"][..]),
        (" / ", &["/a", "/ab", "/b"]),
        ("/a", &["/a", "/ab"]),
        ("/b", &["/b"]),
        ("/c", &[]),
    ] {
        let request = Request::GetEphemerals { prefix: prefix.into() };
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        assert_eq!(bench.call(session, &request), Ok(Response::Ephemerals(paths)), "{prefix:?}");
    }
}
