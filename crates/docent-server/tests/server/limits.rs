//! Each limit, exceeded: the refusal, the warning with the limit's name, and what goes on working.

mod support;

use docent_proto::{
    Acl, Code, Create, CreateMode, EventKind, MultiOp, Permissions, Request, Response, WatchEvent, WatchMode,
    Watches,
};
use docent_server::{Limits, Server};
use std::collections::BTreeSet;
use std::time::Duration;
use support::warnings::Warnings;
use support::world::World;
use support::{Peer, fresh, node};

async fn limited(limits: Limits) -> Server {
    Server::builder().limits(limits).start().await.expect("there is a free port")
}

fn acl(entries: usize) -> Vec<Acl> {
    let entry =
        |n| Acl { permissions: Permissions::ALL, scheme: "digest".into(), id: format!("user{n}:x").into() };
    Acl::open().into_iter().chain((0..entries).map(entry)).collect()
}

fn guarded(path: &str, entries: usize) -> Request {
    Request::Create(Create { acl: acl(entries).into(), ..node(path, CreateMode::Persistent) })
}

fn add_watch(path: &str) -> Request {
    Request::AddWatch { path: path.into(), mode: WatchMode::Persistent }
}

#[tokio::test]
async fn a_frame_over_the_limit_closes_the_link() {
    let warnings = Warnings::watch();
    let server = limited(Limits::default().frame_bytes(1_000)).await;
    let mut peer = Peer::open(&server).await;
    peer.set_data("/", &[0; 900]).await.expect("it fits");
    peer.send_bytes(&1_001_i32.to_be_bytes()).await;
    assert!(peer.is_closed().await);
    warnings.assert_about("frame_bytes", 1_000);
}

#[tokio::test]
async fn a_connection_over_the_limit_is_closed_until_another_ends() {
    let warnings = Warnings::watch();
    let server = limited(Limits::default().connections(1)).await;
    let mut first = Peer::open(&server).await;
    assert!(Peer::handshake(&server, &fresh(10_000)).await.is_none());
    warnings.assert_about("connections", 1);
    first.call(Request::CloseSession).await.expect("it is the session's own");
    assert!(first.is_closed().await);
    while Peer::handshake(&server, &fresh(10_000)).await.is_none() {}
}

#[tokio::test]
async fn a_connection_without_a_session_makes_room_for_the_next() {
    let warnings = Warnings::watch();
    let server = limited(Limits::default().connections(2)).await;
    let _with_session = Peer::open(&server).await;
    let mut silent = Peer::raw(&server).await;
    let _next = Peer::open(&server).await;
    assert!(silent.is_closed().await);
    assert_eq!(server.session_count(), 2);
    warnings.assert_about("connections", 2);
}

#[tokio::test]
async fn a_session_over_the_limit_is_refused_but_attaching_is_not() {
    let warnings = Warnings::watch();
    let server = limited(Limits::default().sessions(1)).await;
    let first = Peer::open(&server).await;
    assert!(Peer::handshake(&server, &fresh(10_000)).await.is_none());
    assert_eq!(first.reattach(&server).await.session.session_id, first.session.session_id);
    warnings.assert_about("sessions", 1);
}

#[tokio::test]
async fn a_node_over_the_limit_is_refused_until_another_goes() {
    let warnings = Warnings::watch();
    let server = limited(Limits::default().nodes(1)).await;
    let mut peer = Peer::open(&server).await;
    peer.create("/a", CreateMode::Persistent).await.expect("it is the first");
    assert_eq!(peer.create("/b", CreateMode::Persistent).await, Err(Code::QUOTA_EXCEEDED));
    warnings.assert_about("nodes", 1);
    peer.delete("/a").await.expect("it exists");
    peer.create("/b", CreateMode::Persistent).await.expect("there is room again");
    let ops = ["/c", "/d"].map(|path| MultiOp::Create(node(path, CreateMode::Persistent)));
    let Ok(Response::Multi(results)) = peer.call(Request::Multi(ops.into())).await else {
        panic!("a multi tells of its failure in the results")
    };
    assert_eq!(results[0], docent_proto::MultiResult::Failed(Code::QUOTA_EXCEEDED));
    assert_eq!(server.nodes(), ["/b"]);
}

#[tokio::test]
async fn bytes_over_the_limit_are_refused_and_smaller_data_is_not() {
    let warnings = Warnings::watch();
    let server = limited(Limits::default().total_bytes(1_000)).await;
    let mut peer = Peer::open(&server).await;
    peer.create("/a", CreateMode::Persistent).await.expect("it is small");
    peer.set_data("/a", &[0; 900]).await.expect("it fits");
    assert_eq!(peer.set_data("/a", &[0; 1_000]).await, Err(Code::QUOTA_EXCEEDED));
    warnings.assert_about("total_bytes", 1_000);
    peer.set_data("/a", &[0; 800]).await.expect("it is less than before");
    peer.delete("/a").await.expect("it exists");
    // A path is kept three times.
    let long = |length| format!("/{}", "n".repeat(length));
    assert_eq!(peer.create(&long(400), CreateMode::Persistent).await, Err(Code::QUOTA_EXCEEDED));
    peer.create(&long(300), CreateMode::Persistent).await.expect("it fits");
}

#[tokio::test]
async fn access_control_lists_count_in_nodes_unless_they_are_open() {
    let server = limited(Limits::default().total_bytes(1_000)).await;
    let mut peer = Peer::open(&server).await;
    for n in 0..50 {
        peer.create(&format!("/open{n}"), CreateMode::Persistent).await.expect("it is small");
        peer.delete(&format!("/open{n}")).await.expect("it exists");
    }
    assert_eq!(peer.call(guarded("/a", 8)).await, Err(Code::QUOTA_EXCEEDED));
    peer.call(guarded("/a", 3)).await.expect("it fits");
    assert_eq!(peer.call(guarded("/b", 3)).await, Err(Code::QUOTA_EXCEEDED));
    let set = |entries| Request::SetAcl { path: "/a".into(), acl: acl(entries), version: -1 };
    assert_eq!(peer.call(set(8)).await, Err(Code::QUOTA_EXCEEDED));
    peer.call(set(0)).await.expect("it is less than before");
    peer.call(guarded("/b", 3)).await.expect("there is room again");
    for path in ["/a", "/b"] {
        peer.delete(path).await.expect("it exists");
    }
    peer.call(guarded("/c", 5)).await.expect("the bytes of nodes that are gone are free");
}

#[tokio::test]
async fn an_access_control_list_over_the_limit_is_refused() {
    let warnings = Warnings::watch();
    let server = limited(Limits::default().acl_bytes(1_000)).await;
    let mut peer = Peer::open(&server).await;
    peer.call(guarded("/a", 5)).await.expect("it fits");
    assert_eq!(peer.call(guarded("/b", 50)).await, Err(Code::QUOTA_EXCEEDED));
    warnings.assert_about("acl_bytes", 1_000);
    let set = Request::SetAcl { path: "/a".into(), acl: acl(50), version: -1 };
    assert_eq!(peer.call(set).await, Err(Code::QUOTA_EXCEEDED));
}

#[tokio::test]
async fn an_identity_over_the_limit_fails_and_closes_the_link() {
    let warnings = Warnings::watch();
    let server = limited(Limits::default().auth_bytes_per_connection(1_000)).await;
    let mut peer = Peer::open(&server).await;
    let digest = |user: String| Request::Auth {
        scheme: "digest".into(),
        credentials: format!("{user}:secret").into_bytes().into(),
    };
    for _ in 0..100 {
        peer.call(digest("the same".into())).await.expect("it is no more than one");
    }
    for n in 0..3 {
        peer.call(digest(format!("user{n}"))).await.expect("it fits");
    }
    assert_eq!(peer.call(digest("u".repeat(1_000))).await, Err(Code::AUTH_FAILED));
    assert!(peer.is_closed().await);
    warnings.assert_about("auth_bytes_per_connection", 1_000);
}

#[tokio::test]
async fn watches_over_the_limit_are_refused_however_they_are_set() {
    let warnings = Warnings::watch();
    let server = limited(Limits::default().watches_per_connection(2)).await;
    let mut peer = Peer::open(&server).await;
    assert_eq!(peer.exists("/a", true).await, Err(Code::NO_NODE));
    assert_eq!(peer.exists("/a", true).await, Err(Code::NO_NODE));
    peer.get_data("/", true).await.expect("the root exists");
    assert_eq!(peer.exists("/b", true).await, Err(Code::QUOTA_EXCEEDED));
    warnings.assert_about("watches_per_connection", 2);
    assert_eq!(peer.exists("/b", false).await, Err(Code::NO_NODE));
    let watches = Watches { exist: vec!["/c".into()], ..Watches::default() };
    assert_eq!(peer.call(Request::SetWatches(watches)).await, Err(Code::QUOTA_EXCEEDED));
    assert_eq!(peer.call(add_watch("/d")).await, Err(Code::QUOTA_EXCEEDED));
    assert_eq!(server.watch_count(), 2);
}

#[tokio::test]
async fn bytes_of_watches_over_the_limit_of_a_link_are_refused() {
    let warnings = Warnings::watch();
    let server = limited(Limits::default().watch_bytes_per_connection(10_000_000)).await;
    let mut peer = Peer::open(&server).await;
    let path = |n| format!("/{n}{}", "w".repeat(1_000_000));
    for n in 0..4 {
        assert_eq!(peer.exists(&path(n), true).await, Err(Code::NO_NODE));
    }
    for n in 4..8 {
        assert_eq!(peer.exists(&path(n), true).await, Err(Code::QUOTA_EXCEEDED));
    }
    let watches = Watches { exist: vec![path(9)], ..Watches::default() };
    assert_eq!(peer.call(Request::SetWatches(watches)).await, Err(Code::QUOTA_EXCEEDED));
    warnings.assert_about("watch_bytes_per_connection", 10_000_000);
    assert_eq!(server.watch_count(), 4);
    // One that came true makes room.
    let ready = peer.create("/0", CreateMode::Persistent).await;
    assert!(ready.is_ok() && peer.create(&path(0), CreateMode::Persistent).await.is_ok());
    assert_eq!(peer.exists(&path(4), true).await, Err(Code::NO_NODE));
}

#[tokio::test]
async fn bytes_of_watches_over_the_limit_of_all_links_are_refused_until_a_link_ends() {
    let warnings = Warnings::watch();
    let server = limited(Limits::default().watch_bytes(10_000)).await;
    let (mut first, mut second) = (Peer::open(&server).await, Peer::open(&server).await);
    for n in 0..18 {
        first.exists(&format!("/{n}"), true).await.expect_err("it does not exist");
    }
    second.exists("/0", true).await.expect_err("it does not exist");
    for peer in [&mut first, &mut second] {
        for request in [add_watch("/x"), Request::Exists { path: "/x".repeat(1_000), watch: true }] {
            assert_eq!(peer.call(request).await, Err(Code::QUOTA_EXCEEDED));
        }
    }
    let peers: BTreeSet<String> =
        warnings.about("watch_bytes").into_iter().map(|fields| fields["peer"].clone()).collect();
    assert_eq!(peers.len(), 2);
    first.call(Request::CloseSession).await.expect("it is the session's own");
    second.call(add_watch("/x")).await.expect("there is room again");
}

#[tokio::test]
async fn a_reply_over_the_limit_is_refused_as_a_whole() {
    let warnings = Warnings::watch();
    let server = limited(Limits::default().reply_bytes(10_000)).await;
    let mut peer = Peer::open(&server).await;
    peer.set_data("/", &[0; 4_000]).await.expect("it fits");
    let read = |times| Request::MultiRead(vec![MultiOp::GetData { path: "/".into() }; times]);
    peer.call(read(2)).await.expect("it fits");
    assert_eq!(peer.call(read(3)).await, Err(Code::QUOTA_EXCEEDED));
    warnings.assert_about("reply_bytes", 10_000);
    let children = |watch| Request::GetChildren { path: "/".into(), watch };
    for n in 0..400 {
        peer.create(&format!("/e{n}"), CreateMode::Ephemeral).await.expect("there is room");
        if n == 200 {
            peer.call(children(false)).await.expect("it fits");
        }
    }
    let lists = [
        children(true),
        Request::GetChildren2 { path: "/".into(), watch: true },
        Request::MultiRead(vec![MultiOp::GetChildren { path: "/".into() }]),
        Request::GetEphemerals { prefix: "/".into() },
    ];
    for list in lists {
        assert_eq!(peer.call(list).await, Err(Code::QUOTA_EXCEEDED));
    }
    assert_eq!(server.watch_count(), 0);
}

#[tokio::test]
async fn a_link_that_never_asks_for_a_session_is_closed() {
    let warnings = Warnings::watch();
    let server = limited(Limits::default().handshake(Duration::from_millis(20))).await;
    let mut silent = Peer::raw(&server).await;
    assert!(silent.is_closed().await);
    warnings.assert_about("handshake", 20);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_not_answered_without_end() {
    let server = Server::start().await.expect("there is a free port");
    let (mut greedy, mut other) = (Peer::open(&server).await, Peer::open(&server).await);
    other.set_data("/", &vec![0; 500_000]).await.expect("it fits");
    let request = Request::GetData { path: "/".into(), watch: false };
    for _ in 1..=2_000 {
        greedy.send(request.clone()).await;
    }
    // One gigabyte of answers is due. The link got stuck long before, others go on, and reading sets it free
    // again.
    other.call(Request::Sync { path: "/".into() }).await.expect("the server goes on");
    for xid in 1..=20 {
        let (header, body) = greedy.reply().await.expect("the link stays open");
        assert_eq!((header.xid, header.code), (xid, Code::OK));
        assert!(body.len() > 500_000);
    }
}

async fn version(peer: &mut Peer, path: &str) -> i32 {
    match peer.exists(path, false).await {
        Ok(Response::Stat(stat)) => stat.version,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn requests_over_the_limit_of_a_link_wait_until_it_reads() {
    const REQUESTS: i32 = 1_500;
    const LIMIT: i32 = 10;
    /// Answers of 88 bytes that a pipe has room for.
    const PIPE: i32 = (1 << 16) / 88 + 1;
    let limits = Limits::default().requests_per_connection(LIMIT as usize);
    let world = World::new(Server::builder().limits(limits)).await;
    let (mut greedy, mut other) = (world.peer(10_000).await, world.peer(10_000).await);
    other.create("/a", CreateMode::Persistent).await.expect("there is room");
    for _ in 0..REQUESTS {
        greedy.send(Request::SetData { path: "/a".into(), data: None, version: -1 }).await;
    }
    // It goes on for as long as there is room for answers.
    let (mut done, mut same) = (0, 0);
    while same < 100 {
        let now = version(&mut other, "/a").await;
        same = if now == done { same + 1 } else { 0 };
        done = now;
    }
    assert!((PIPE / 2..=PIPE + LIMIT).contains(&done), "{done} of {REQUESTS} requests were carried out");
    for xid in 1..=REQUESTS {
        let (header, _) = greedy.reply().await.expect("the link stays open");
        assert_eq!((header.xid, header.code), (xid, Code::OK));
    }
    assert_eq!(version(&mut other, "/a").await, REQUESTS);
}

/// A server whose links are short pipes in memory, and two clients of it: of these the first watches a node
/// and does not read, and the second changes the node.
async fn deaf(limits: Limits) -> (World, Peer, Peer, String) {
    let world = World::new(Server::builder().limits(limits)).await;
    let (mut deaf, mut busy) = (world.peer(10_000).await, world.peer(10_000).await);
    let path = format!("/{}", "n".repeat(1_000));
    busy.create(&path, CreateMode::Persistent).await.expect("there is room");
    deaf.call(add_watch(&path)).await.expect("there is room");
    (world, deaf, busy, path)
}

#[tokio::test(start_paused = true)]
async fn events_that_a_client_does_not_read_close_its_link() {
    let warnings = Warnings::watch();
    let limits = Limits::default().queued_bytes_per_connection(200_000);
    let (world, mut deaf, mut busy, path) = deaf(limits).await;
    let mut made = 0;
    while world.server.connection_count() == 2 {
        made += 1;
        assert!(made < 400, "200 events and a pipe of 64 of them is all there is room for");
        busy.set_data(&path, b"").await.expect("the server goes on");
    }
    assert!(made > 200);
    warnings.assert_about("queued_bytes_per_connection", 200_000);
    assert!(deaf.is_closed().await);
}

#[tokio::test(start_paused = true)]
async fn bytes_that_wait_in_all_links_close_the_one_in_which_most_wait() {
    let warnings = Warnings::watch();
    let (world, mut deaf, mut busy, path) = deaf(Limits::default().queued_bytes(400_000)).await;
    let mut less = world.peer(10_000).await;
    for _ in 0..100 {
        busy.set_data(&path, b"").await.expect("the server goes on");
    }
    less.call(add_watch(&path)).await.expect("there is room");
    while world.server.connection_count() == 3 {
        busy.set_data(&path, b"").await.expect("the server goes on");
    }
    warnings.assert_about("queued_bytes", 400_000);
    assert!(deaf.is_closed().await);
    less.call(Request::Ping).await.expect("its link is open");
}

#[tokio::test(start_paused = true)]
async fn a_frame_that_never_ends_counts_among_the_bytes_that_wait() {
    let warnings = Warnings::watch();
    let world = World::new(Server::builder().limits(Limits::default().queued_bytes(1_000_000))).await;
    let mut bystander = world.peer(10_000).await;
    let mut links: Vec<Peer> = (0..20).map(|_| world.link()).collect();
    for link in &mut links {
        link.send_bytes(&100_000_i32.to_be_bytes()).await;
        link.send_bytes(&[0; 99_000]).await;
        bystander.call(Request::Ping).await.expect("the server goes on");
    }
    assert!(world.server.connection_count() <= 11);
    let warned = warnings.about("queued_bytes");
    assert_eq!(warned.len(), 10, "{warned:?}");
}

#[tokio::test(start_paused = true)]
async fn events_of_a_transaction_over_the_limit_close_the_links_that_would_be_told() {
    let warnings = Warnings::watch();
    let world = World::new(Server::builder().limits(Limits::default().events_per_transaction(3))).await;
    let mut peers = Vec::new();
    for _ in 0..5 {
        let mut peer = world.peer(10_000).await;
        peer.get_data("/", true).await.expect("the root exists");
        peers.push(peer);
    }
    let mut busy = world.peer(10_000).await;
    busy.set_data("/", b"x").await.expect("the server goes on");
    for (index, peer) in peers.iter_mut().enumerate() {
        if index < 3 {
            assert_eq!(peer.event().await.path, "/");
        } else {
            assert!(peer.is_closed().await);
        }
    }
    assert_eq!(warnings.about("events_per_transaction").len(), 2);
    assert_eq!(world.server.session_count(), 6);
}

#[tokio::test(start_paused = true)]
async fn sessions_that_end_in_the_same_tick_have_their_events_each() {
    let world = World::new(Server::builder().limits(Limits::default().events_per_transaction(3))).await;
    let mut watcher = world.peer(40_000).await;
    let mode = WatchMode::PersistentRecursive;
    watcher.call(Request::AddWatch { path: "/".into(), mode }).await.expect("there is room");
    let mut owners = Vec::new();
    for name in ["a", "b", "c"] {
        let mut owner = world.peer(4_000).await;
        for n in 0..2 {
            owner.create(&format!("/{name}{n}"), CreateMode::Ephemeral).await.expect("there is none");
            assert_eq!(watcher.event().await.kind, EventKind::Created);
        }
        owners.push(owner);
    }
    world.end_of(&owners[0]).await;
    assert_eq!(world.server.session_count(), 1);
    for path in ["/a0", "/a1", "/b0", "/b1", "/c0", "/c1"] {
        assert_eq!(watcher.event().await, WatchEvent { kind: EventKind::Deleted, path: path.into() });
    }
    watcher.call(Request::Ping).await.expect("its link is open");
}

#[tokio::test(start_paused = true)]
async fn messages_held_over_the_limit_close_the_link_that_sends_them() {
    let warnings = Warnings::watch();
    let world = World::new(Server::builder().limits(Limits::default().held_bytes(3_000))).await;
    let (follower, dial) = world.follower(|follower| follower).await;
    let (mut greedy, mut other) = (dial.peer(10_000).await, dial.peer(10_000).await);
    follower.cut_off_holding();
    for n in 0..10 {
        greedy.send(Request::Create(node(&format!("/g{n}"), CreateMode::Persistent))).await;
    }
    assert!(greedy.is_closed().await);
    warnings.assert_about("held_bytes", 3_000);
    let held = follower.held_count();
    assert!((1..6).contains(&held), "{held}");
    other.get_data("/", false).await.expect("reads go on");
    follower.rejoin();
    assert_eq!(world.server.nodes().len(), held);
}

#[tokio::test(start_paused = true)]
async fn the_past_over_the_limit_is_forgotten_oldest_first() {
    let warnings = Warnings::watch();
    let world = World::new(Server::builder().limits(Limits::default().past_bytes(50_000))).await;
    let (_follower, dial) = world.follower(|follower| follower.lag(Duration::from_secs(3_600))).await;
    // The same again in another life of the server, which has no past.
    for _ in 0..2 {
        let (mut reader, mut writer) = (dial.peer(10_000).await, world.peer(10_000).await);
        writer.set_data("/", b"0").await.expect("the server goes on");
        assert_eq!(shown(&mut reader).await, []);
        for n in 1..100_u8 {
            writer.set_data("/", &[n]).await.expect("the server goes on");
        }
        let shown = shown(&mut reader).await;
        assert!(shown[0] > 80 && shown[0] < 99, "{shown:?}");
        warnings.assert_about("past_bytes", 50_000);
        world.server.restart_empty().await.expect("pipes are free");
    }
}

#[tokio::test(start_paused = true)]
async fn the_changes_of_the_past_count_with_it() {
    let warnings = Warnings::watch();
    let world = World::new(Server::builder().limits(Limits::default().past_bytes(50_000))).await;
    let (_follower, dial) = world.follower(|follower| follower.lag(Duration::from_secs(3_600))).await;
    let (mut reader, mut writer) = (dial.peer(10_000).await, world.peer(10_000).await);
    let in_one = |times, value: u8| {
        let set = |_| MultiOp::SetData { path: "/".into(), data: Some(vec![value].into()), version: -1 };
        Request::Multi((0..times).map(set).collect())
    };
    writer.call(in_one(100, 1)).await.expect("it is one transaction");
    assert_eq!(shown(&mut reader).await, []);
    // Without room for what it told, the tree before is not shown either.
    writer.call(in_one(400, 2)).await.expect("it is one transaction");
    assert_eq!(shown(&mut reader).await, [2]);
    warnings.assert_about("past_bytes", 50_000);
    // The room was given back.
    let mut late = dial.attach(&reader.ticket()).await;
    for n in 1..100_u8 {
        writer.set_data("/", &[n]).await.expect("the server goes on");
    }
    let shown = shown(&mut late).await;
    assert!(shown[0] > 80 && shown[0] < 99, "{shown:?}");
}

/// The data of the root.
async fn shown(reader: &mut Peer) -> Vec<u8> {
    match reader.get_data("/", false).await {
        Ok(Response::Data { data, .. }) => data.unwrap_or_default().to_vec(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_journal_over_the_limit_refuses_writes_and_sessions_but_no_end() {
    let warnings = Warnings::watch();
    let limits = Limits::default().journal_bytes(20_000);
    let world = World::new(Server::builder().limits(limits).journal(true)).await;
    let mut peer = world.peer(10_000).await;
    peer.create("/e", CreateMode::Ephemeral).await.expect("there is room");
    let mut result = Ok(Response::Empty);
    for _ in 0..100 {
        result = peer.set_data("/", &[0; 100]).await;
    }
    assert_eq!(result, Err(Code::QUOTA_EXCEEDED));
    warnings.assert_about("journal_bytes", 20_000);
    let mut next = world.link();
    assert!(!next.attach(&fresh(10_000)).await);
    peer.call(Request::CloseSession).await.expect("it is the session's own");
    assert_eq!(world.server.nodes().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn warnings_do_not_flood_the_log() {
    let warnings = Warnings::watch();
    let world = World::new(Server::builder().limits(Limits::default().nodes(0))).await;
    let mut peer = world.peer(10_000).await;
    for second in 0..3 {
        world.at(second * 1_000 + 500).await;
        for _ in 0..50 {
            peer.create("/a", CreateMode::Persistent).await.expect_err("there is no room");
        }
    }
    assert_eq!(warnings.about("nodes").len(), 3);
    let mut peers = Vec::new();
    for _ in 0..150 {
        let mut peer = world.peer(10_000).await;
        peer.create("/a", CreateMode::Persistent).await.expect_err("there is no room");
        peers.push(peer);
    }
    // A hundred in a second, of which one was there already; the next one tells of the others.
    assert_eq!(warnings.about("nodes").len(), 102);
    world.at(4_000).await;
    peer.create("/a", CreateMode::Persistent).await.expect_err("there is no room");
    assert_eq!(warnings.about("nodes").last().expect("it is the last")["unsaid"], "51");
}
