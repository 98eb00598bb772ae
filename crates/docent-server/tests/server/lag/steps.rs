//! Missed changes, which are reported one by one.

use super::{TIMEOUT_MS, created, deleted, events, staying, world};
use docent_proto::{Acl, Code, CreateMode, EventKind, MultiOp, Permissions, Request, WatchMode, Watches};

#[tokio::test(start_paused = true)]
async fn a_node_deleted_with_its_child_reports_the_child_first() {
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
        let events: Vec<EventKind> = peer.events.drain(..).map(|event| event.kind).collect();
        assert_eq!(events, missed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_transaction_that_creates_and_deletes_reports_each_step_to_persistent_watches() {
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
    let of_all = events(&[
        (Created, "/a/b"),
        (Deleted, "/a/b"),
        (Created, "/a/c"),
        (DataChanged, "/a/c"),
        (Deleted, "/a/c"),
        (Created, "/a/c"),
    ]);
    for (mode, path, missed) in [
        (WatchMode::PersistentRecursive, "/a", of_all),
        (WatchMode::Persistent, "/a", events(&[(ChildrenChanged, "/a"); 5])),
        (WatchMode::Persistent, "/a/b", events(&[(Created, "/a/b"), (Deleted, "/a/b")])),
        (WatchMode::PersistentRecursive, "/a/b", events(&[(Created, "/a/b"), (Deleted, "/a/b")])),
    ] {
        for request in staying(path, mode) {
            let mut peer = dial.attach(&ticket).await;
            peer.call(request).await.unwrap();
            peer.exists("/a", false).await.expect("an event ends the lag");
            assert_eq!(Vec::from_iter(peer.events.drain(..)), missed, "{mode:?} {path}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_transaction_that_creates_and_deletes_reports_only_the_first_step_to_a_one_shot_watch() {
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
        assert_eq!(Vec::from_iter(peer.events.drain(..)), events(&[missed]));
        assert_eq!(world.server.watch_count(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_two_watches_of_a_node_missed_is_reported_once() {
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
    assert_eq!(Vec::from_iter(peer.events.drain(..)), events(&[step, gone, step, gone].concat()));
    assert_eq!(world.server.watch_count(), 4, "the recursive watch must replace the one-shot watch");
}

#[tokio::test(start_paused = true)]
async fn a_missed_change_is_checked_with_its_old_acl_and_the_current_identities() {
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
        (false, events(&[(DataChanged, "/a"), (Created, "/a")])),
        (true, events(&[(DataChanged, "/a"), (DataChanged, "/a"), (Deleted, "/a"), (Created, "/a")])),
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
