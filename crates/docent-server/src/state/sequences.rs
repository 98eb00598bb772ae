//! Properties of any sequence of requests: nothing panics, counters are correct, limits hold, and memory
//! grows in proportion to the data sent.

use super::acl::{self, Identity};
use super::node::Node;
use super::session::Session;
use super::tree::{self, SYSTEM};
use super::{Effects, Handshake, Origin, Staleness, State};
use crate::config::Config;
use crate::limits::NODE;
use crate::{EndCause, Limits};
use bytes::{Bytes, BytesMut};
use docent_proto::{
    Acl, ConnectRequest, Create, CreateKind, MultiOp, Permissions, Request, RequestFrame, WatchKind,
    WatchMode, Watches, parent,
};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::proptest;
use proptest::sample::select;
use std::collections::BTreeSet;

/// Maximum bytes that a server holds for each byte received. The extreme case is the shortest entry of a list
/// of recursive watches, which has four bytes and creates two watches.
const FACTOR: usize = 300;

const SESSIONS: usize = 3;

/// Bytes of a reply before its body.
const HEADER: usize = 20;

#[derive(Debug, Clone)]
enum Step {
    /// A session sends a request.
    Send(usize, Request),
    /// A session gets another link, or is opened again if it has ended.
    Attach(usize),
    /// This many milliseconds pass.
    Pass(i64),
}

fn path() -> impl Strategy<Value = String> {
    let usual = vec!["/", "/a", "/b", "/a/x", "/a/x/y", "/a/q-", "/q-", "/a/x/", "", "x", "/a//b", "/a/\0"];
    let fixed = vec!["/zookeeper", "/zookeeper/quota", "/zookeeper/config"];
    prop_oneof![
        8 => select(usual).prop_map(String::from),
        1 => select(fixed).prop_map(String::from),
        2 => "/[a-d]{1,40}",
    ]
}

fn acl() -> impl Strategy<Value = Vec<Acl>> {
    let entry = |scheme: &'static str, id: &'static str| Acl {
        permissions: Permissions::ALL,
        scheme: scheme.into(),
        id: id.into(),
    };
    let rare = vec![
        entry("digest", "u:hash"),
        entry("ip", "127.0.0.0/8"),
        entry("ip", "10.0.0.1"),
        entry("auth", ""),
        entry("none", ""),
    ];
    prop_oneof![4 => Just(Acl::open()), 2 => vec(select(rare), 0..4)]
}

fn data() -> impl Strategy<Value = Option<Bytes>> {
    proptest::option::of(vec(any::<u8>(), 0..300).prop_map(Bytes::from))
}

fn version() -> impl Strategy<Value = i32> {
    prop_oneof![3 => Just(-1), 2 => 0..4, 1 => any::<i32>()]
}

fn create() -> impl Strategy<Value = Create> {
    let ttl = select(vec![-1, 0, 1, 1_000, i64::MAX, i64::MIN]).prop_map(CreateKind::Ttl);
    let kind = prop_oneof![
        4 => Just(CreateKind::Plain),
        4 => Just(CreateKind::WithStat),
        1 => Just(CreateKind::Container),
        1 => ttl,
    ];
    (kind, path(), data(), acl(), -1..9).prop_map(|(kind, path, data, acl, flags)| Create {
        kind,
        path,
        data,
        acl: acl.into(),
        flags,
    })
}

fn operation() -> impl Strategy<Value = MultiOp> {
    prop_oneof![
        4 => create().prop_map(MultiOp::Create),
        3 => (path(), version()).prop_map(|(path, version)| MultiOp::Delete { path, version }),
        3 => (path(), data(), version())
            .prop_map(|(path, data, version)| MultiOp::SetData { path, data, version }),
        1 => (path(), version()).prop_map(|(path, version)| MultiOp::Check { path, version }),
        1 => path().prop_map(|path| MultiOp::GetData { path }),
    ]
}

fn write() -> impl Strategy<Value = Request> {
    prop_oneof![
        6 => create().prop_map(Request::Create),
        3 => (path(), version()).prop_map(|(path, version)| Request::Delete { path, version }),
        2 => (path(), data(), version())
            .prop_map(|(path, data, version)| Request::SetData { path, data, version }),
        2 => (path(), acl(), version())
            .prop_map(|(path, acl, version)| Request::SetAcl { path, acl, version }),
        3 => vec(operation(), 0..6).prop_map(Request::Multi),
        1 => Just(Request::CloseSession),
    ]
}

fn read() -> impl Strategy<Value = Request> {
    let kind = || select(vec![WatchKind::Children, WatchKind::Data, WatchKind::Any]);
    let mode = select(vec![WatchMode::Persistent, WatchMode::PersistentRecursive]);
    prop_oneof![
        (path(), any::<bool>()).prop_map(|(path, watch)| Request::Exists { path, watch }),
        (path(), any::<bool>()).prop_map(|(path, watch)| Request::GetData { path, watch }),
        (path(), any::<bool>()).prop_map(|(path, watch)| Request::GetChildren2 { path, watch }),
        path().prop_map(|path| Request::GetAcl { path }),
        path().prop_map(|prefix| Request::GetEphemerals { prefix }),
        path().prop_map(|path| Request::GetAllChildrenNumber { path }),
        vec(path().prop_map(|path| MultiOp::GetData { path }), 0..4).prop_map(Request::MultiRead),
        (path(), mode).prop_map(|(path, mode)| Request::AddWatch { path, mode }),
        (path(), kind()).prop_map(|(path, kind)| Request::RemoveWatches { path, kind }),
        (path(), kind()).prop_map(|(path, kind)| Request::CheckWatches { path, kind }),
        "[a-c]:[a-c]{1,30}".prop_map(|credentials| Request::Auth {
            scheme: "digest".into(),
            credentials: credentials.into()
        }),
        Just(Request::WhoAmI),
        set_watches(),
    ]
}

fn set_watches() -> impl Strategy<Value = Request> {
    let paths = || vec(path(), 0..6);
    (-1_i64..20, paths(), paths(), paths(), paths(), paths()).prop_map(
        |(relative_zxid, data, exist, child, persistent, recursive)| Request::SetWatches2 {
            once: Watches { relative_zxid, data, exist, child },
            persistent,
            recursive,
        },
    )
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let send = (0..SESSIONS, prop_oneof![3 => write(), 2 => read()])
        .prop_map(|(session, request)| Step::Send(session, request));
    let step = prop_oneof![
        16 => send,
        1 => (0..SESSIONS).prop_map(Step::Attach),
        1 => (0_i64..6_000).prop_map(Step::Pass),
    ];
    vec(step, 1..80)
}

/// A state with sessions, and the number of bytes sent to it.
struct Bench {
    state: State,
    sessions: Vec<i64>,
    now: i64,
    sent: usize,
}

impl Bench {
    fn new(limits: Limits) -> Self {
        let config = Config { limits, ttl_nodes: true, ..Config::default() };
        let state = State::new(config, Origin { zxid: 0, session: 0 });
        let mut bench = Self { state, sessions: vec![0; SESSIONS], now: 0, sent: 0 };
        (0..SESSIONS).for_each(|session| bench.attach(session));
        bench
    }

    fn attach(&mut self, session: usize) {
        self.state.detach(self.sessions[session]);
        let request = ConnectRequest { read_only: None, ..ConnectRequest::new_session(10_000) };
        let password = |session: &Session| Bytes::copy_from_slice(&session.password);
        let old = self.state.database.sessions.get(self.sessions[session]).map(password);
        let again = old.map(|password| ConnectRequest {
            session_id: self.sessions[session],
            password,
            ..request.clone()
        });
        let request = again.unwrap_or(request);
        if let Handshake::Attached(response) =
            self.state.connect(&request, (4_000, 40_000), [127, 0, 0, 1].into(), self.now)
        {
            self.sessions[session] = response.session_id;
        }
    }

    fn step(&mut self, step: &Step) -> Effects {
        let mut effects = Effects::default();
        match step {
            Step::Send(session, request) => self.send(self.sessions[*session], request, &mut effects),
            Step::Attach(session) => self.attach(*session),
            Step::Pass(time) => {
                self.now += time;
                for id in self.state.overdue(self.now) {
                    self.state.expire(id, EndCause::Expired, self.now, &mut effects);
                }
                for path in self.state.done(self.now) {
                    self.state.reap(&path, self.now, &mut effects);
                }
            }
        }
        effects
    }

    fn send(&mut self, session: i64, request: &Request, effects: &mut Effects) {
        // A link without a session cannot send requests.
        if self.state.database.sessions.get(session).is_none() {
            return;
        }
        let mut frame = BytesMut::new();
        RequestFrame { xid: 1, request: request.clone() }.encode(&mut frame);
        self.sent += frame.len();
        let most = self.state.longest_answer(Staleness { lag_ms: 0, seen: 0 }, session, request, self.now);
        let reply = self.state.apply(session, request, self.now, effects);
        if let Ok(response) = reply.result {
            let mut body = BytesMut::new();
            response.write(&mut body);
            assert!(HEADER + body.len() <= most, "{} bytes for {request:?}, not {most}", body.len());
        }
    }

    /// Ends all sessions, as their clients do.
    fn close_all(&mut self) {
        for session in self.state.session_ids() {
            self.send(session, &Request::CloseSession, &mut Effects::default());
        }
    }

    /// Counts the bytes held, item by item.
    fn held(&self) -> usize {
        let nodes: usize =
            self.state.database.tree.iter().map(|(path, node)| NODE + weight(path, node)).sum();
        let identities = self.state.database.sessions.iter().flat_map(|(_, session)| &session.identities);
        let identities: usize = identities.map(|identity| acl::named(&identity.scheme, &identity.id)).sum();
        nodes + self.state.database.watches.bytes() + identities
    }

    /// Asserts that the maintained counters match the existing nodes and watches.
    fn check_books(&self) {
        let (tree, watches) = (&self.state.database.tree, &self.state.database.watches);
        assert_eq!(tree.weight(), tree.iter().map(|(path, node)| weight(path, node)).sum::<usize>());
        let live = self.state.session_ids();
        assert_eq!(watches.count(), live.iter().map(|id| watches.count_of(*id)).sum::<usize>());
        assert_eq!(watches.bytes(), live.iter().map(|id| watches.bytes_of(*id)).sum::<usize>());
        let owned =
            self.state.ephemerals().flat_map(|(owner, paths)| paths.iter().map(move |path| (path, owner)));
        let owned: BTreeSet<(String, i64)> = owned.map(|(path, owner)| (path.clone(), owner)).collect();
        let existing = tree.iter().filter(|(_, node)| node.lifetime.owner() != 0);
        let existing = existing.map(|(path, node)| (path.to_owned(), node.lifetime.owner())).collect();
        assert_eq!(owned, existing);
        for (path, node) in tree.iter().filter(|(path, _)| *path != "/") {
            let above = parent(path).and_then(|parent| tree.get(parent)).expect("a node has a parent");
            assert!(above.children.contains(&path[path.rfind('/').map_or(0, |slash| slash + 1)..]), "{path}");
            assert!(
                node.children.len() <= node.creates as usize || node.creates < 0 || SYSTEM.contains(&path)
            );
        }
    }
}

fn weight(path: &str, node: &Node) -> usize {
    tree::weight(path, tree::size(node.data.as_ref()), &node.acl)
}

fn uses_auth_scheme(step: &Step) -> bool {
    let is_auth = |list: &[Acl]| list.iter().any(|entry| entry.scheme == "auth");
    let of_op = |op: &MultiOp| matches!(op, MultiOp::Create(create) if is_auth(&create.acl));
    match step {
        Step::Send(_, Request::Create(create)) => is_auth(&create.acl),
        Step::Send(_, Request::SetAcl { acl, .. }) => is_auth(acl),
        Step::Send(_, Request::Multi(ops)) => ops.iter().any(of_op),
        _ => false,
    }
}

proptest! {
    #[test]
    fn indexes_are_consistent_after_each_step_and_nothing_outlives_its_session(steps in steps()) {
        let mut bench = Bench::new(Limits::default());
        for step in &steps {
            bench.step(step);
            bench.check_books();
        }
        bench.close_all();
        bench.check_books();
        assert_eq!(bench.state.watch_count(), 0);
        assert_eq!(bench.state.database.tree.iter().filter(|(_, node)| node.lifetime.owner() != 0).count(), 0);
    }

    #[test]
    fn memory_grows_no_faster_than_what_is_sent(steps in steps()) {
        let mut bench = Bench::new(Limits::default());
        let base = bench.held();
        // An entry with the scheme `auth` is replaced by all identities of the client, which have their own
        // limit.
        for step in steps.iter().filter(|step| !uses_auth_scheme(step)) {
            bench.step(step);
            let (held, sent) = (bench.held(), bench.sent);
            assert!(held <= base + FACTOR * sent, "{held} bytes are held after {sent} were sent");
        }
    }

    #[test]
    fn no_sequence_gets_past_a_limit(steps in steps()) {
        let limits = Limits::default()
            .nodes(6)
            .total_bytes(3_000)
            .acl_bytes(400)
            .auth_bytes_per_connection(600)
            .watches_per_connection(7)
            .watch_bytes(6_000)
            .events_per_transaction(3);
        let mut bench = Bench::new(limits.clone());
        let before = bench.state.database.tree.weight();
        for step in &steps {
            let effects = bench.step(step);
            let database = &bench.state.database;
            assert!(database.tree.len() - SYSTEM.len() <= limits.nodes);
            assert!(database.tree.weight() <= before.max(limits.total_bytes));
            assert!(database.watches.bytes() <= limits.watch_bytes);
            assert!(database.tree.iter().all(|(_, node)| acl::weight(&node.acl) <= limits.acl_bytes));
            for (id, session) in database.sessions.iter() {
                assert!(database.watches.count_of(id) <= limits.watches_per_connection);
                let named = |identity: &Identity| acl::named(&identity.scheme, &identity.id);
                let bytes: usize = session.identities.iter().map(named).sum();
                assert!(bytes <= limits.auth_bytes_per_connection);
            }
            assert!(effects.events.as_slice().len() <= limits.events_per_transaction);
        }
    }
}
