//! Watches that are set on a past tree.

use super::{TIMEOUT_MS, children, events, reconnects, staying, world};
use crate::support::node;
use crate::support::warnings::Warnings;
use crate::support::world::World;
use docent_proto::{
    Acl, Create, CreateMode, EventKind, MultiOp, Permissions, Request, WatchEvent, WatchMode, Watches,
};
use docent_server::{Limits, Server};
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_watch_set_in_the_past_reports_later_changes_and_ends_the_lag() {
    let (world, _follower, dial) = world().await;
    let mut peer = reconnects(&world, &dial).await;
    assert_eq!(children(&mut peer, true).await, [""; 0]);
    assert_eq!(peer.event().await, WatchEvent { kind: EventKind::ChildrenChanged, path: "/line".into() });
    assert_eq!(children(&mut peer, false).await, ["mine"]);
    assert_eq!(world.server.watch_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn each_watch_set_in_the_past_reports_the_first_later_change() {
    let (world, _follower, dial) = world().await;
    let mut writer = world.peer(TIMEOUT_MS).await;
    for path in ["/set", "/deleted", "/anew", "/secret", "/same"] {
        writer.create(path, CreateMode::Persistent).await.unwrap();
    }
    world.at(1_000).await;
    let ticket = writer.ticket();
    // A client that may no longer read the node gets no event.
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
        // Each watch is set on a new link, for which the follower has not caught up.
        let mut peer = dial.attach(&ticket).await;
        assert_eq!(peer.exists(path, true).await.is_ok(), path != "/created", "{path}");
        peer.call(Request::Ping).await.unwrap();
        let event = kind.map(|kind| WatchEvent { kind, path: path.into() });
        assert_eq!(peer.events.pop_front(), event, "{path}");
        assert_eq!(world.server.watch_count(), 0, "{path}");
    }
    // A watch on an unchanged node waits for the next change.
    let mut peer = dial.attach(&ticket).await;
    assert!(peer.exists("/same", true).await.is_ok());
    assert_eq!(world.server.watch_count(), 1);
    world.peer(TIMEOUT_MS).await.set_data("/same", b"new").await.unwrap();
    assert_eq!(peer.event().await, WatchEvent { kind: EventKind::DataChanged, path: "/same".into() });
}

#[tokio::test(start_paused = true)]
async fn a_persistent_watch_reports_all_changes_since_its_past_version() {
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
    let of_node = events(&[(ChildrenChanged, "/a"), (DataChanged, "/a"), (ChildrenChanged, "/a")]);
    let of_all = events(&[
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
            // The answer belongs to the past, and the events after it do not.
            assert_eq!(peer.last_zxid, ticket.last_zxid_seen);
            assert!(peer.events.is_empty());
            peer.exists("/ab", false).await.expect("an event ends the lag");
            assert_eq!(Vec::from_iter(peer.events.drain(..)), missed, "{mode:?}");
        }
    }
    assert_eq!(world.server.watch_count(), 2, "the last watch must still be set");
}

#[tokio::test(start_paused = true)]
async fn several_rearmed_watches_report_each_change_once_in_transaction_order() {
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
    let missed = events(&[
        (DataChanged, "/c"),
        (DataChanged, "/a/b"),
        (Created, "/c/gone"),
        (ChildrenChanged, "/c"),
        (ChildrenChanged, "/c"),
        (Created, "/a/gone"),
        (Deleted, "/a/gone"),
    ]);
    assert_eq!(Vec::from_iter(peer.events.drain(..)), missed);
    // An event before the answer brings the client to the present.
    let mut writer = world.peer(TIMEOUT_MS).await;
    writer.create("/c/gone", CreateMode::Persistent).await.unwrap();
    let mut peer = dial.attach(&ticket).await;
    peer.call(again).await.unwrap();
    assert_eq!(Vec::from_iter(peer.events.drain(..)), events(&[(Created, "/c/gone")]));
    assert!(peer.last_zxid > ticket.last_zxid_seen);
    peer.exists("/c", false).await.unwrap();
    assert!(peer.events.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_persistent_watch_reports_no_node_that_its_client_may_not_read() {
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
async fn a_follower_that_is_cut_off_accepts_persistent_watches_and_reports_nothing() {
    let (world, follower, dial) = world().await;
    let mut peer = dial.peer(TIMEOUT_MS).await;
    follower.cut_off();
    let [request, again] = staying("/", WatchMode::PersistentRecursive);
    peer.call(request).await.unwrap();
    let mut writer = world.peer(TIMEOUT_MS).await;
    writer.create("/line", CreateMode::Persistent).await.unwrap();
    peer.call(Request::Ping).await.unwrap();
    assert!(peer.events.is_empty());
    assert_eq!(world.server.watch_count(), 0, "the leader knows the watches");
    let mut moved = world.dial.attach(&peer.ticket()).await;
    moved.call(again).await.unwrap();
    writer.set_data("/line", b"1").await.unwrap();
    assert_eq!(moved.event().await, WatchEvent { kind: EventKind::DataChanged, path: "/line".into() });
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_fires_ends_the_lag() {
    let (world, _follower, dial) = world().await;
    let mut peer = reconnects(&world, &dial).await;
    let watches = |child: &str| {
        let child = vec![child.to_owned()];
        let relative_zxid = world.server.zxid() - 1;
        Request::SetWatches(Watches { relative_zxid, data: Vec::new(), exist: Vec::new(), child })
    };
    // Nothing has changed at this node, which says nothing about other nodes.
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
async fn a_watch_that_has_missed_too_much_closes_its_link() {
    let warnings = Warnings::watch();
    let world = World::new(Server::builder().limits(Limits::default().events_per_transaction(10))).await;
    let (_follower, dial) = world.follower(|builder| builder.lag(Duration::from_secs(2))).await;
    let mut reader = dial.peer(TIMEOUT_MS).await;
    let mut writer = world.peer(TIMEOUT_MS).await;
    writer.create("/line", CreateMode::Persistent).await.expect("the node can be created");
    for _ in 0..11 {
        writer.set_data("/line", b"x").await.expect("/line exists");
    }
    reader.send(Request::AddWatch { path: "/line".into(), mode: WatchMode::Persistent }).await;
    assert!(reader.is_closed().await);
    warnings.assert_about("events_per_transaction", 10);
}
