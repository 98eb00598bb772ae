//! Clients of a follower that lags: the age of the tree that they see, and the events that end the lag.

mod support;

use docent_proto::{
    Acl, Code, Create, CreateMode, EventKind, MultiOp, MultiResult, Permissions, Request, Response,
    WatchEvent, WatchMode, Watches,
};
use docent_server::{Follower, Limits, Server};
use std::time::Duration;
use support::warnings::Warnings;
use support::world::{Dial, World};
use support::{Peer, node};

const TIMEOUT_MS: i32 = 20_000;

/// A follower that is two seconds behind.
async fn world() -> (World, Follower, Dial) {
    let world = World::new(Server::builder()).await;
    let (follower, dial) = world.follower(|builder| builder.lag(Duration::from_secs(2))).await;
    (world, follower, dial)
}

async fn children(peer: &mut Peer, watch: bool) -> Vec<String> {
    let request = Request::GetChildren2 { path: "/line".into(), watch };
    match peer.call(request).await.expect("the line can be listed") {
        Response::Children { names, .. } => names,
        other => panic!("{other:?}"),
    }
}

/// A client that knows an empty `/line`, whose reply to a create in it was lost at one second, and that comes
/// back by the follower.
async fn comes_back(world: &World, dial: &Dial) -> Peer {
    let mut first = world.peer(TIMEOUT_MS).await;
    first.create("/line", CreateMode::Persistent).await.expect("there is none");
    world.at(1_000).await;
    let ticket = first.ticket();
    first.create("/line/mine", CreateMode::Ephemeral).await.expect("there is none");
    dial.attach(&ticket).await
}

#[tokio::test(start_paused = true)]
async fn what_was_created_over_a_lost_link_is_shown_only_after_the_lag() {
    let (world, _follower, dial) = world().await;
    let mut peer = comes_back(&world, &dial).await;
    let created = world.server.zxid();
    assert_eq!(children(&mut peer, false).await, [""; 0]);
    assert_eq!(peer.exists("/line/mine", false).await, Err(Code::NO_NODE));
    assert_eq!(peer.get_data("/line/mine", false).await, Err(Code::NO_NODE));
    let ops = vec![MultiOp::GetChildren { path: "/line".into() }];
    let Ok(Response::Multi(results)) = peer.call(Request::MultiRead(ops)).await else { panic!() };
    assert_eq!(results, [MultiResult::Children(Vec::new())]);
    peer.call(Request::Ping).await.unwrap();
    assert_eq!(peer.last_zxid, created - 1);
    world.at(2_999).await;
    assert_eq!(children(&mut peer, false).await, [""; 0]);
    world.at(3_000).await;
    assert_eq!(children(&mut peer, false).await, ["mine"]);
    assert_eq!(peer.last_zxid, created);
}

#[tokio::test(start_paused = true)]
async fn a_sync_ends_it() {
    let (world, _follower, dial) = world().await;
    let mut peer = comes_back(&world, &dial).await;
    peer.call(Request::Sync { path: "/line".into() }).await.unwrap();
    assert_eq!(children(&mut peer, false).await, ["mine"]);
}

#[tokio::test(start_paused = true)]
async fn an_own_write_ends_it_also_one_that_is_refused() {
    for (request, answer) in [
        (Request::Create(node("/other", CreateMode::Persistent)), Ok(())),
        (Request::Delete { path: "/none".into(), version: -1 }, Err(Code::NO_NODE)),
    ] {
        let (world, _follower, dial) = world().await;
        let mut peer = comes_back(&world, &dial).await;
        assert_eq!(peer.call(request).await.map(drop), answer);
        assert_eq!(children(&mut peer, false).await, ["mine"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_own_write_is_made_where_most_of_the_past_is_over() {
    let (world, _follower, dial) = world().await;
    let (mut peer, mut other) = (dial.peer(TIMEOUT_MS).await, world.peer(TIMEOUT_MS).await);
    for path in ["/a", "/b", "/c", "/d", "/e"] {
        other.create(path, CreateMode::Persistent).await.expect("there is none");
    }
    world.at(1_500).await;
    other.create("/f", CreateMode::Persistent).await.expect("there is none");
    world.at(2_500).await;
    peer.create("/g", CreateMode::Persistent).await.expect("there is none");
    assert!(peer.exists("/f", false).await.is_ok(), "it knows its own write, which came later");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_shown_that_is_older_than_what_the_client_has_seen() {
    let (world, _follower, dial) = world().await;
    let mut writer = world.peer(TIMEOUT_MS).await;
    writer.create("/line", CreateMode::Persistent).await.unwrap();
    writer.create("/line/a", CreateMode::Persistent).await.unwrap();
    let ticket = writer.ticket();
    writer.create("/line/b", CreateMode::Persistent).await.unwrap();
    // A new session is a transaction that the follower has seen, and so is what comes with the handshake.
    let mut fresh = dial.peer(TIMEOUT_MS).await;
    assert_eq!(children(&mut fresh, false).await, ["a", "b"]);
    let mut moved = dial.attach(&ticket).await;
    assert_eq!(children(&mut moved, false).await, ["a"]);
    let mut other = world.peer(TIMEOUT_MS).await;
    other.create("/line/c", CreateMode::Persistent).await.unwrap();
    // It lags for both, for each as far as it may.
    assert_eq!(children(&mut fresh, false).await, ["a", "b"]);
    assert_eq!(children(&mut moved, false).await, ["a"]);
    // Without a lag the present is shown to all.
    let mut near = world.dial.attach(&ticket).await;
    assert_eq!(children(&mut near, false).await, ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_set_in_the_past_tells_of_what_came_since_and_ends_it() {
    let (world, _follower, dial) = world().await;
    let mut peer = comes_back(&world, &dial).await;
    assert_eq!(children(&mut peer, true).await, [""; 0]);
    assert_eq!(peer.event().await, WatchEvent { kind: EventKind::ChildrenChanged, path: "/line".into() });
    assert_eq!(children(&mut peer, false).await, ["mine"]);
    assert_eq!(world.server.watch_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn each_watch_set_in_the_past_tells_the_first_change_since() {
    let (world, _follower, dial) = world().await;
    let mut writer = world.peer(TIMEOUT_MS).await;
    for path in ["/set", "/deleted", "/anew", "/secret", "/same"] {
        writer.create(path, CreateMode::Persistent).await.unwrap();
    }
    world.at(1_000).await;
    let ticket = writer.ticket();
    // A client that may not read it any more is not told.
    let acl = vec![Acl { permissions: Permissions::WRITE, ..Acl::open().remove(0) }];
    writer.call(Request::SetAcl { path: "/secret".into(), acl, version: -1 }).await.unwrap();
    for path in ["/set", "/set", "/secret"] {
        writer.set_data(path, b"new").await.unwrap();
    }
    for path in ["/deleted", "/anew"] {
        writer.delete(path).await.unwrap();
    }
    for path in ["/anew", "/created"] {
        writer.create(path, CreateMode::Persistent).await.unwrap();
    }
    for (path, kind) in [
        ("/set", Some(EventKind::DataChanged)),
        ("/deleted", Some(EventKind::Deleted)),
        ("/anew", Some(EventKind::Deleted)),
        ("/created", Some(EventKind::Created)),
        ("/secret", None),
    ] {
        // Each by a link of its own, that has not caught up.
        let mut peer = dial.attach(&ticket).await;
        assert_eq!(peer.exists(path, true).await.is_ok(), path != "/created", "{path}");
        peer.call(Request::Ping).await.unwrap();
        let event = kind.map(|kind| WatchEvent { kind, path: path.into() });
        assert_eq!(peer.events.pop_front(), event, "{path}");
        assert_eq!(world.server.watch_count(), 0, "{path}");
    }
    // Where nothing has changed it waits for that.
    let mut peer = dial.attach(&ticket).await;
    assert!(peer.exists("/same", true).await.is_ok());
    assert_eq!(world.server.watch_count(), 1);
    world.peer(TIMEOUT_MS).await.set_data("/same", b"new").await.unwrap();
    assert_eq!(peer.event().await, WatchEvent { kind: EventKind::DataChanged, path: "/same".into() });
}

fn told(events: &[(EventKind, &str)]) -> Vec<WatchEvent> {
    events.iter().map(|(kind, path)| WatchEvent { kind: *kind, path: (*path).to_owned() }).collect()
}

/// Requests that set a watch that stays, each in its own way.
fn staying(path: &str, mode: WatchMode) -> [Request; 2] {
    let paths = |wanted| if mode == wanted { vec![path.to_owned()] } else { Vec::new() };
    let again = Request::SetWatches2 {
        once: Watches::default(),
        persistent: paths(WatchMode::Persistent),
        recursive: paths(WatchMode::PersistentRecursive),
    };
    [Request::AddWatch { path: path.into(), mode }, again]
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_stays_tells_all_changes_since_the_past_it_was_set_in() {
    use EventKind::{ChildrenChanged, Created, DataChanged, Deleted};
    let (world, _follower, dial) = world().await;
    let mut writer = world.peer(TIMEOUT_MS).await;
    writer.create("/a", CreateMode::Persistent).await.unwrap();
    writer.create("/a/old", CreateMode::Persistent).await.unwrap();
    world.at(1_000).await;
    let ticket = writer.ticket();
    let both = ["/a/b", "/a/b/c"].map(|path| MultiOp::Create(node(path, CreateMode::Persistent)));
    writer.call(Request::Multi(both.into())).await.unwrap();
    writer.set_data("/a", b"1").await.unwrap();
    writer.set_data("/a/b", b"2").await.unwrap();
    writer.delete("/a/b/c").await.unwrap();
    writer.delete("/a/old").await.unwrap();
    writer.create("/ab", CreateMode::Persistent).await.unwrap();
    let of_node = told(&[(ChildrenChanged, "/a"), (DataChanged, "/a"), (ChildrenChanged, "/a")]);
    let of_all = told(&[
        (Created, "/a/b"),
        (Created, "/a/b/c"),
        (DataChanged, "/a"),
        (DataChanged, "/a/b"),
        (Deleted, "/a/b/c"),
        (Deleted, "/a/old"),
    ]);
    for (mode, missed) in [(WatchMode::Persistent, of_node), (WatchMode::PersistentRecursive, of_all)] {
        for request in staying("/a", mode) {
            let mut peer = dial.attach(&ticket).await;
            peer.call(request).await.unwrap();
            // The answer is of the past, and what comes behind it is not.
            assert_eq!(peer.last_zxid, ticket.last_zxid_seen);
            assert!(peer.events.is_empty());
            peer.exists("/ab", false).await.expect("an event ended the lag");
            assert_eq!(Vec::from_iter(peer.events.drain(..)), missed, "{mode:?}");
        }
    }
    assert_eq!(world.server.watch_count(), 2, "the last one is still there");
}

#[tokio::test(start_paused = true)]
async fn several_watches_that_are_set_again_tell_each_change_once_and_in_the_order_of_transactions() {
    use EventKind::{ChildrenChanged, Created, DataChanged, Deleted};
    let (world, _follower, dial) = world().await;
    let mut writer = world.peer(TIMEOUT_MS).await;
    for path in ["/a", "/a/b", "/c"] {
        writer.create(path, CreateMode::Persistent).await.unwrap();
    }
    world.at(1_000).await;
    let ticket = writer.ticket();
    writer.set_data("/c", b"1").await.unwrap();
    writer.set_data("/a/b", b"2").await.unwrap();
    writer.create("/c/gone", CreateMode::Persistent).await.unwrap();
    writer.delete("/c/gone").await.unwrap();
    writer.create("/a/gone", CreateMode::Persistent).await.unwrap();
    writer.delete("/a/gone").await.unwrap();
    let paths = |paths: &[&str]| Vec::from_iter(paths.iter().map(|path| (*path).to_owned()));
    let again = Request::SetWatches2 {
        once: Watches {
            relative_zxid: ticket.last_zxid_seen,
            exist: paths(&["/a/gone", "/c/gone"]),
            ..Watches::default()
        },
        persistent: paths(&["/a/b", "/c"]),
        recursive: paths(&["/a"]),
    };
    let mut peer = dial.attach(&ticket).await;
    peer.call(again.clone()).await.unwrap();
    assert_eq!((peer.last_zxid, peer.events.len()), (ticket.last_zxid_seen, 0));
    peer.exists("/c", false).await.unwrap();
    let missed = told(&[
        (DataChanged, "/c"),
        (DataChanged, "/a/b"),
        (Created, "/c/gone"),
        (ChildrenChanged, "/c"),
        (ChildrenChanged, "/c"),
        (Created, "/a/gone"),
        (Deleted, "/a/gone"),
    ]);
    assert_eq!(Vec::from_iter(peer.events.drain(..)), missed);
    // One that was told on the way to the answer has brought the server to the present.
    let mut writer = world.peer(TIMEOUT_MS).await;
    writer.create("/c/gone", CreateMode::Persistent).await.unwrap();
    let mut peer = dial.attach(&ticket).await;
    peer.call(again).await.unwrap();
    assert_eq!(Vec::from_iter(peer.events.drain(..)), told(&[(Created, "/c/gone")]));
    assert!(peer.last_zxid > ticket.last_zxid_seen);
    peer.exists("/c", false).await.unwrap();
    assert!(peer.events.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_stays_tells_nothing_of_what_its_client_may_not_read() {
    let (world, _follower, dial) = world().await;
    let mut writer = world.peer(TIMEOUT_MS).await;
    let ticket = writer.ticket();
    let acl = Acl { permissions: Permissions::DELETE, ..Acl::open().remove(0) };
    let hidden = Create { acl: [acl].into(), ..node("/hidden", CreateMode::Persistent) };
    writer.call(Request::Create(hidden)).await.unwrap();
    writer.create("/shown", CreateMode::Persistent).await.unwrap();
    for request in staying("/", WatchMode::PersistentRecursive) {
        let mut peer = dial.attach(&ticket).await;
        peer.call(request).await.unwrap();
        assert_eq!(peer.event().await, WatchEvent { kind: EventKind::Created, path: "/shown".into() });
    }
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_is_cut_off_takes_watches_that_stay_and_sees_nothing_for_them() {
    let (world, follower, dial) = world().await;
    let mut peer = dial.peer(TIMEOUT_MS).await;
    follower.cut_off();
    let [request, again] = staying("/", WatchMode::PersistentRecursive);
    peer.call(request).await.unwrap();
    let mut writer = world.peer(TIMEOUT_MS).await;
    writer.create("/line", CreateMode::Persistent).await.unwrap();
    peer.call(Request::Ping).await.unwrap();
    assert!(peer.events.is_empty());
    assert_eq!(world.server.watch_count(), 0, "the leader knows nothing of them");
    let mut moved = world.dial.attach(&peer.ticket()).await;
    moved.call(again).await.unwrap();
    writer.set_data("/line", b"1").await.unwrap();
    assert_eq!(moved.event().await, WatchEvent { kind: EventKind::DataChanged, path: "/line".into() });
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_fires_ends_it() {
    let (world, _follower, dial) = world().await;
    let mut peer = comes_back(&world, &dial).await;
    let watches = |child: &str| {
        let child = vec![child.to_owned()];
        let relative_zxid = world.server.zxid() - 1;
        Request::SetWatches(Watches { relative_zxid, data: Vec::new(), exist: Vec::new(), child })
    };
    // Nothing has changed there: that says nothing of the rest.
    peer.call(watches("/")).await.unwrap();
    assert_eq!(children(&mut peer, false).await, [""; 0]);
    peer.call(watches("/line")).await.unwrap();
    assert_eq!(peer.event().await, WatchEvent { kind: EventKind::ChildrenChanged, path: "/line".into() });
    assert_eq!(children(&mut peer, false).await, ["mine"]);

    let mut other = world.peer(TIMEOUT_MS).await;
    other.create("/line/later", CreateMode::Persistent).await.unwrap();
    assert_eq!(children(&mut peer, false).await, ["mine"]);
    other.create("/top", CreateMode::Persistent).await.unwrap();
    assert_eq!(peer.event().await, WatchEvent { kind: EventKind::ChildrenChanged, path: "/".into() });
    assert_eq!(children(&mut peer, false).await, ["later", "mine"]);
}

#[tokio::test(start_paused = true)]
async fn the_lag_can_be_set_while_it_runs_and_harms_nobody_else() {
    let (world, follower, dial) = world().await;
    let (_prompt, prompt_dial) = world.follower(|builder| builder).await;
    let mut peer = comes_back(&world, &dial).await;
    assert_eq!(children(&mut peer, false).await, [""; 0]);
    let ticket = peer.ticket();
    let mut prompt = prompt_dial.attach(&ticket).await;
    assert_eq!(children(&mut prompt, false).await, ["mine"]);
    let mut peer = dial.attach(&ticket).await;
    assert_eq!(children(&mut peer, false).await, [""; 0]);
    follower.set_lag(Duration::ZERO);
    assert_eq!(children(&mut peer, false).await, ["mine"]);
    // A version that was not kept cannot be shown.
    follower.set_lag(Duration::from_secs(2));
    let mut peer = dial.attach(&ticket).await;
    assert_eq!(children(&mut peer, false).await, ["mine"]);
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_is_cut_off_shows_what_was_there_then_and_lags_again_when_it_rejoins() {
    let (world, follower, dial) = world().await;
    let mut peer = comes_back(&world, &dial).await;
    assert_eq!(children(&mut peer, false).await, [""; 0]);
    let ticket = peer.ticket();
    follower.cut_off();
    assert_eq!(children(&mut peer, false).await, ["mine"]);
    follower.rejoin();
    assert!(peer.is_closed().await);
    let mut peer = dial.attach(&ticket).await;
    assert_eq!(children(&mut peer, false).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_has_missed_too_much_closes_its_link() {
    let warnings = Warnings::watch();
    let world = World::new(Server::builder().limits(Limits::default().events_per_transaction(10))).await;
    let (_follower, dial) = world.follower(|builder| builder.lag(Duration::from_secs(2))).await;
    let mut reader = dial.peer(TIMEOUT_MS).await;
    let mut writer = world.peer(TIMEOUT_MS).await;
    writer.create("/line", CreateMode::Persistent).await.expect("there is none");
    for _ in 0..11 {
        writer.set_data("/line", b"x").await.expect("the line exists");
    }
    reader.send(Request::AddWatch { path: "/line".into(), mode: WatchMode::Persistent }).await;
    assert!(reader.is_closed().await);
    warnings.assert_about("events_per_transaction", 10);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_went_with_its_child_tells_of_the_child_first() {
    use EventKind::{ChildrenChanged, Deleted};
    let (world, _follower, dial) = world().await;
    let mut writer = world.peer(TIMEOUT_MS).await;
    for path in ["/a", "/a/b"] {
        writer.create(path, CreateMode::Persistent).await.unwrap();
    }
    world.at(1_000).await;
    let ticket = writer.ticket();
    let both = ["/a/b", "/a"].map(|path| MultiOp::Delete { path: path.into(), version: -1 });
    writer.call(Request::Multi(both.into())).await.unwrap();
    let once = Request::GetChildren { path: "/a".into(), watch: true };
    let stays = Request::AddWatch { path: "/a".into(), mode: WatchMode::Persistent };
    for (request, missed) in [(once, vec![ChildrenChanged]), (stays, vec![ChildrenChanged, Deleted])] {
        let mut peer = dial.attach(&ticket).await;
        peer.call(request).await.unwrap();
        assert_eq!(peer.exists("/a", false).await, Err(Code::NO_NODE));
        let told: Vec<EventKind> = peer.events.drain(..).map(|event| event.kind).collect();
        assert_eq!(told, missed);
    }
}

fn created(path: &str) -> MultiOp {
    MultiOp::Create(node(path, CreateMode::Persistent))
}

fn deleted(path: &str) -> MultiOp {
    MultiOp::Delete { path: path.into(), version: -1 }
}

#[tokio::test(start_paused = true)]
async fn a_transaction_that_both_creates_and_deletes_tells_watches_that_stay_of_each_step() {
    use EventKind::{ChildrenChanged, Created, DataChanged, Deleted};
    let (world, _follower, dial) = world().await;
    let mut writer = world.peer(TIMEOUT_MS).await;
    writer.create("/a", CreateMode::Persistent).await.unwrap();
    world.at(1_000).await;
    let ticket = writer.ticket();
    writer.call(Request::Multi(vec![created("/a/b"), deleted("/a/b")])).await.unwrap();
    let set = MultiOp::SetData { path: "/a/c".into(), data: None, version: -1 };
    let ops = vec![created("/a/c"), set, deleted("/a/c"), created("/a/c")];
    writer.call(Request::Multi(ops)).await.unwrap();
    let of_all = told(&[
        (Created, "/a/b"),
        (Deleted, "/a/b"),
        (Created, "/a/c"),
        (DataChanged, "/a/c"),
        (Deleted, "/a/c"),
        (Created, "/a/c"),
    ]);
    for (mode, path, missed) in [
        (WatchMode::PersistentRecursive, "/a", of_all),
        (WatchMode::Persistent, "/a", told(&[(ChildrenChanged, "/a"); 5])),
        (WatchMode::Persistent, "/a/b", told(&[(Created, "/a/b"), (Deleted, "/a/b")])),
        (WatchMode::PersistentRecursive, "/a/b", told(&[(Created, "/a/b"), (Deleted, "/a/b")])),
    ] {
        for request in staying(path, mode) {
            let mut peer = dial.attach(&ticket).await;
            peer.call(request).await.unwrap();
            peer.exists("/a", false).await.expect("an event ended the lag");
            assert_eq!(Vec::from_iter(peer.events.drain(..)), missed, "{mode:?} {path}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_transaction_that_both_creates_and_deletes_tells_a_watch_that_is_gone_by_that_of_the_first_step() {
    use EventKind::{ChildrenChanged, Created};
    let (world, _follower, dial) = world().await;
    let mut writer = world.peer(TIMEOUT_MS).await;
    writer.create("/a", CreateMode::Persistent).await.unwrap();
    world.at(1_000).await;
    let ticket = writer.ticket();
    writer.call(Request::Multi(vec![created("/a/b"), deleted("/a/b")])).await.unwrap();
    let relative_zxid = ticket.last_zxid_seen;
    let again = |exist: &str, child: &str| {
        let paths = |path: &str| Vec::from_iter((!path.is_empty()).then(|| path.to_owned()));
        let (exist, child) = (paths(exist), paths(child));
        Request::SetWatches(Watches { relative_zxid, data: Vec::new(), exist, child })
    };
    for (request, missed) in [
        (Request::Exists { path: "/a/b".into(), watch: true }, (Created, "/a/b")),
        (again("/a/b", ""), (Created, "/a/b")),
        (Request::GetChildren { path: "/a".into(), watch: true }, (ChildrenChanged, "/a")),
    ] {
        let mut peer = dial.attach(&ticket).await;
        let _no_node = peer.call(request).await;
        peer.exists("/a", false).await.unwrap();
        assert_eq!(Vec::from_iter(peer.events.drain(..)), told(&[missed]));
        assert_eq!(world.server.watch_count(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_two_watches_of_a_node_missed_is_told_once() {
    let (world, _follower, dial) = world().await;
    let mut writer = world.peer(TIMEOUT_MS).await;
    let ticket = writer.ticket();
    writer.call(Request::Multi(vec![created("/a"), deleted("/a")])).await.unwrap();
    writer.call(Request::Multi(vec![created("/a"), deleted("/a")])).await.unwrap();
    let path = || vec!["/a".to_owned()];
    let again = Request::SetWatches2 {
        once: Watches { relative_zxid: ticket.last_zxid_seen, exist: path(), ..Watches::default() },
        persistent: vec!["/".into()],
        recursive: path(),
    };
    let mut peer = dial.attach(&ticket).await;
    peer.call(again).await.unwrap();
    peer.exists("/", false).await.unwrap();
    let step = [(EventKind::Created, "/a"), (EventKind::ChildrenChanged, "/")];
    let gone = [(EventKind::Deleted, "/a"), (EventKind::ChildrenChanged, "/")];
    assert_eq!(Vec::from_iter(peer.events.drain(..)), told(&[step, gone, step, gone].concat()));
    assert_eq!(world.server.watch_count(), 4, "the recursive watch took the place of the one for once");
}

#[tokio::test(start_paused = true)]
async fn a_missed_change_is_told_by_the_rights_at_its_time_to_the_identities_of_now() {
    use EventKind::{Created, DataChanged, Deleted};
    let (world, _follower, dial) = world().await;
    let auth = || Request::Auth { scheme: "digest".into(), credentials: "ann:secret".into() };
    let mut writer = world.peer(TIMEOUT_MS).await;
    writer.call(auth()).await.unwrap();
    writer.create("/a", CreateMode::Persistent).await.unwrap();
    world.at(1_000).await;
    let ticket = writer.ticket();
    writer.set_data("/a", b"for all").await.unwrap();
    let own = Acl { permissions: Permissions::ALL, scheme: "auth".into(), id: "".into() };
    writer.call(Request::SetAcl { path: "/a".into(), acl: vec![own], version: -1 }).await.unwrap();
    writer.set_data("/a", b"for ann").await.unwrap();
    writer.call(Request::Multi(vec![deleted("/a"), created("/a")])).await.unwrap();
    for (is_ann, missed) in [
        (false, told(&[(DataChanged, "/a"), (Created, "/a")])),
        (true, told(&[(DataChanged, "/a"), (DataChanged, "/a"), (Deleted, "/a"), (Created, "/a")])),
    ] {
        for request in staying("/", WatchMode::PersistentRecursive) {
            let mut peer = dial.attach(&ticket).await;
            if is_ann {
                peer.call(auth()).await.unwrap();
            }
            peer.call(request).await.unwrap();
            peer.exists("/a", false).await.unwrap();
            assert_eq!(Vec::from_iter(peer.events.drain(..)), missed, "{is_ann}");
        }
    }
}
