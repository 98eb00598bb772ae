use super::{Peer, secret};
use docent_battery::{Backend, both_backends_in_real_time};
use docent_proto::EventKind::{ChildrenChanged, Created, DataChanged, Deleted};
use docent_proto::{Acl, Code, CreateMode, Request, Response, WatchKind, WatchMode, Watches};

/// The digest of `user:secret`.
const USER: &str = "user:5w9W4eL3797Y4Wq8AcKUPPk8ha4=";

both_backends_in_real_time! {
    async fn a_persistent_watch_reports_each_change_of_the_node_and_of_its_children(backend: Backend) {
        let server = backend.start().await;
        let (mut watcher, mut writer) = (Peer::of(&server).await, Peer::of(&server).await);
        let (node, child) = (server.path("a"), server.path("a/b"));
        watcher.stay(&node, WatchMode::Persistent).await;
        for _ in 0..2 {
            writer.create(&node).await;
            writer.set(&node).await;
            writer.set(&node).await;
            writer.create(&child).await;
            writer.set(&child).await;
            writer.delete(&child).await;
            writer.delete(&node).await;
            let expected = [Created, DataChanged, DataChanged, ChildrenChanged, ChildrenChanged, Deleted];
            assert_eq!(watcher.drain_events().await, expected.map(|kind| (kind, node.clone())));
        }
        // A client also receives events of its own changes.
        watcher.create(&node).await;
        assert_eq!(watcher.drain_events().await, [(Created, node)]);
    }

    async fn a_recursive_watch_reports_all_nodes_below_but_no_child_list_changes(backend: Backend) {
        let server = backend.start().await;
        let (mut watcher, mut writer) = (Peer::of(&server).await, Peer::of(&server).await);
        let [node, child, deep, beside] = ["a", "a/b", "a/b/c", "ab"].map(|name| server.path(name));
        watcher.stay(&node, WatchMode::PersistentRecursive).await;
        for path in [&node, &child, &beside, &deep] {
            writer.create(path).await;
            writer.set(path).await;
        }
        for path in [&deep, &child, &beside, &node] {
            writer.delete(path).await;
        }
        let both = |path: &String| [(Created, path.clone()), (DataChanged, path.clone())];
        let until_deleted = [deep.clone(), child.clone(), node.clone()].map(|path| (Deleted, path));
        let expected: Vec<_> = [both(&node), both(&child), both(&deep)].into_iter().flatten().chain(until_deleted).collect();
        assert_eq!(watcher.drain_events().await, expected);
    }

    async fn a_change_is_reported_once_for_several_watches(backend: Backend) {
        let server = backend.start().await;
        let (mut watcher, mut writer) = (Peer::of(&server).await, Peer::of(&server).await);
        let (root, node) = (server.root().to_owned(), server.path("a"));
        watcher.stay(&root, WatchMode::PersistentRecursive).await;
        watcher.stay(&node, WatchMode::PersistentRecursive).await;
        writer.create(&node).await;
        watcher.watch_children(&node).await;
        watcher.watch_data(&node).await;
        writer.set(&node).await;
        writer.delete(&node).await;
        assert_eq!(
            watcher.drain_events().await,
            [(Created, node.clone()), (DataChanged, node.clone()), (Deleted, node)]
        );
    }

    async fn a_watch_replaces_one_of_another_mode(backend: Backend) {
        let server = backend.start().await;
        let (mut watcher, mut writer) = (Peer::of(&server).await, Peer::of(&server).await);
        let (node, child) = (server.path("a"), server.path("a/b"));
        writer.create(&node).await;
        watcher.stay(&node, WatchMode::Persistent).await;
        // From here on the data watch fires once, and the child watch stays.
        watcher.watch_data(&node).await;
        writer.set(&node).await;
        writer.set(&node).await;
        writer.create(&child).await;
        assert_eq!(watcher.drain_events().await, [(DataChanged, node.clone()), (ChildrenChanged, node.clone())]);
        watcher.stay(&node, WatchMode::PersistentRecursive).await;
        writer.set(&child).await;
        writer.delete(&child).await;
        assert_eq!(watcher.drain_events().await, [(DataChanged, child.clone()), (Deleted, child.clone())]);
        // A recursive watch that lost its data half reports deletions by the other half.
        watcher.watch_data(&node).await;
        writer.create(&child).await;
        writer.set(&child).await;
        writer.delete(&child).await;
        assert_eq!(watcher.drain_events().await, [(Deleted, child.clone())]);
        watcher.stay(&node, WatchMode::Persistent).await;
        writer.create(&child).await;
        assert_eq!(watcher.drain_events().await, [(ChildrenChanged, node)]);
    }

    async fn a_watch_is_removed_by_its_kind(backend: Backend) {
        let server = backend.start().await;
        let (mut watcher, mut writer) = (Peer::of(&server).await, Peer::of(&server).await);
        let (node, child) = (server.path("a"), server.path("a/b"));
        for kind in [WatchKind::Children, WatchKind::Data, WatchKind::Any] {
            assert_eq!(watcher.remove(&node, kind).await, Err(Code::NO_WATCHER));
        }
        writer.create(&node).await;
        watcher.watch_data(&node).await;
        assert_eq!(watcher.remove(&node, WatchKind::Children).await, Err(Code::NO_WATCHER));
        assert_eq!(writer.remove(&node, WatchKind::Data).await, Err(Code::NO_WATCHER));
        assert_eq!(watcher.remove(&node, WatchKind::Data).await, Ok(()));
        assert_eq!(watcher.remove(&node, WatchKind::Data).await, Err(Code::NO_WATCHER));
        watcher.watch_children(&node).await;
        assert_eq!(watcher.remove(&node, WatchKind::Children).await, Ok(()));
        writer.set(&node).await;
        writer.create(&child).await;
        assert_eq!(watcher.drain_events().await, []);

        watcher.stay(&node, WatchMode::Persistent).await;
        assert_eq!(watcher.remove(&node, WatchKind::Data).await, Ok(()));
        writer.set(&node).await;
        writer.delete(&child).await;
        assert_eq!(watcher.drain_events().await, [(ChildrenChanged, node.clone())]);
        assert_eq!(watcher.remove(&node, WatchKind::Any).await, Ok(()));
        watcher.stay(&node, WatchMode::PersistentRecursive).await;
        assert_eq!(watcher.remove(&child, WatchKind::Any).await, Err(Code::NO_WATCHER));
        assert_eq!(watcher.remove(&node, WatchKind::Any).await, Ok(()));
        writer.create(&child).await;
        writer.set(&node).await;
        assert_eq!(watcher.drain_events().await, []);
        assert_eq!(watcher.remove(&node, WatchKind::Any).await, Err(Code::NO_WATCHER));
    }

    async fn a_watch_is_checked_by_its_kind_for_any_link(backend: Backend) {
        let server = backend.start().await;
        let (mut watcher, mut writer) = (Peer::of(&server).await, Peer::of(&server).await);
        let (node, child) = (server.path("a"), server.path("a/b"));
        writer.create(&node).await;
        assert_eq!(watcher.check(&node, WatchKind::Any).await, Err(Code::NO_WATCHER));
        watcher.watch_data(&node).await;
        for peer in [&mut watcher, &mut writer] {
            assert_eq!(peer.check(&node, WatchKind::Data).await, Ok(()));
            assert_eq!(peer.check(&node, WatchKind::Any).await, Ok(()));
            assert_eq!(peer.check(&node, WatchKind::Children).await, Err(Code::NO_WATCHER));
        }
        writer.set(&node).await;
        assert_eq!(watcher.check(&node, WatchKind::Any).await, Err(Code::NO_WATCHER));
        watcher.stay(&node, WatchMode::PersistentRecursive).await;
        for kind in [WatchKind::Children, WatchKind::Data, WatchKind::Any] {
            assert_eq!(watcher.check(&node, kind).await, Ok(()));
            assert_eq!(watcher.check(&child, kind).await, Err(Code::NO_WATCHER));
        }
        assert_eq!(watcher.check("", WatchKind::Any).await, Err(Code::NO_WATCHER));
        assert_eq!(watcher.check("a", WatchKind::Any).await, Err(Code::MARSHALLING_ERROR));
    }

    async fn no_watch_reports_a_node_that_its_client_may_not_read(backend: Backend) {
        let server = backend.start().await;
        let (mut writer, mut user) = (Peer::of(&server).await, Peer::of(&server).await);
        let (mut recursive, mut persistent) = (Peer::of(&server).await, Peer::of(&server).await);
        let [node, hidden, below] = ["a", "a/b", "a/b/c"].map(|name| server.path(name));
        for peer in [&mut user, &mut writer] {
            peer.authenticate("user:secret").await;
        }
        writer.create(&node).await;
        for peer in [&mut user, &mut recursive] {
            peer.stay(&node, WatchMode::PersistentRecursive).await;
        }
        persistent.stay(&hidden, WatchMode::Persistent).await;
        persistent.stay(&node, WatchMode::Persistent).await;
        writer.create_as(&hidden, CreateMode::Persistent, secret(USER)).await;
        writer.set(&hidden).await;
        writer.create(&below).await;
        writer.delete(&below).await;
        writer.delete(&hidden).await;
        let all = [
            (Created, hidden.clone()),
            (DataChanged, hidden.clone()),
            (Created, below.clone()),
            (Deleted, below.clone()),
            (Deleted, hidden.clone()),
        ];
        assert_eq!(user.drain_events().await, all);
        assert_eq!(recursive.drain_events().await, [(Created, below.clone()), (Deleted, below)]);
        assert_eq!(persistent.drain_events().await, [(ChildrenChanged, node.clone()), (ChildrenChanged, node)]);
    }

    async fn rearmed_one_shot_watches_report_missed_changes(backend: Backend) {
        let server = backend.start().await;
        let mut writer = Peer::of(&server).await;
        let [old, changed, until_deleted, anew] = ["old", "changed", "gone", "new"].map(|name| server.path(name));
        for path in [&old, &changed, &until_deleted] {
            writer.create(path).await;
        }
        let relative_zxid = writer.0.ask(Request::Ping).await.unwrap().header.zxid;
        writer.set(&changed).await;
        writer.create(&format!("{changed}/child")).await;
        writer.delete(&until_deleted).await;
        writer.create(&anew).await;
        let mut watcher = Peer::of(&server).await;
        let once = Watches {
            relative_zxid,
            data: vec![old.clone(), changed.clone(), until_deleted.clone()],
            exist: vec![anew.clone(), until_deleted.clone()],
            child: vec![old.clone(), changed.clone(), until_deleted.clone()],
        };
        let (persistent, recursive) = (vec![changed.clone(), until_deleted.clone()], vec![anew.clone()]);
        let again = Request::SetWatches2 { once, persistent, recursive };
        assert_eq!(watcher.call(again).await, Ok(Response::Empty));
        let missed = [
            (DataChanged, changed.clone()),
            (Deleted, until_deleted.clone()),
            (Created, anew.clone()),
            (ChildrenChanged, changed.clone()),
            (Deleted, until_deleted.clone()),
        ];
        assert_eq!(watcher.drain_events().await, missed);
        for path in [&old, &changed, &anew] {
            writer.set(path).await;
            writer.set(path).await;
        }
        writer.create(&until_deleted).await;
        writer.create(&format!("{anew}/child")).await;
        let expected = [
            (DataChanged, old),
            (DataChanged, changed.clone()),
            (DataChanged, changed),
            (DataChanged, anew.clone()),
            (DataChanged, anew.clone()),
            (Created, until_deleted),
            (Created, format!("{anew}/child")),
        ];
        assert_eq!(watcher.drain_events().await, expected);
    }

    async fn one_request_sets_watches_on_several_nodes_at_any_time(backend: Backend) {
        let server = backend.start().await;
        let (mut watcher, mut writer) = (Peer::of(&server).await, Peer::of(&server).await);
        let [old, changed, until_deleted, anew] = ["old", "changed", "gone", "new"].map(|name| server.path(name));
        for path in [&old, &changed, &until_deleted] {
            writer.create(path).await;
        }
        writer.create_as(&anew, CreateMode::Persistent, secret(USER)).await;
        let relative_zxid = writer.0.ask(Request::Ping).await.unwrap().header.zxid;
        watcher.watch_data(&old).await;
        writer.set(&changed).await;
        writer.delete(&until_deleted).await;
        let data = vec![old.clone(), changed.clone(), until_deleted.clone(), anew.clone()];
        let watches = Watches { relative_zxid, data, ..Watches::default() };
        assert_eq!(watcher.call(Request::SetWatches(watches)).await, Ok(Response::Empty));
        assert_eq!(watcher.drain_events().await, [(DataChanged, changed.clone()), (Deleted, until_deleted.clone())]);
        // The two fired watches have left nothing, and one node is watched once.
        for path in [&changed, &old] {
            writer.set(path).await;
            writer.set(path).await;
        }
        writer.create(&until_deleted).await;
        assert_eq!(watcher.drain_events().await, [(DataChanged, old)]);
        // The watch on a node that the client may not read exists, but sends no events.
        assert_eq!(watcher.check(&anew, WatchKind::Data).await, Ok(()));
        writer.delete(&anew).await;
        assert_eq!(watcher.drain_events().await, []);
    }

    async fn persistent_watches_end_with_their_link(backend: Backend) {
        let server = backend.start().await;
        let (mut watcher, mut writer) = (Peer::of(&server).await, Peer::of(&server).await);
        let node = server.path("a");
        watcher.stay(&node, WatchMode::Persistent).await;
        watcher.stay(server.root(), WatchMode::PersistentRecursive).await;
        let again = docent_proto::ConnectRequest {
            last_zxid_seen: 0,
            timeout_ms: 20_000,
            session_id: watcher.0.session().session_id,
            password: watcher.0.session().password.clone(),
            read_only: Some(false),
        };
        let mut moved = Peer(docent_battery::RawClient::attach(server.address(), &again).await.unwrap());
        writer.create(&node).await;
        assert_eq!(moved.drain_events().await, []);
        moved.stay(&node, WatchMode::Persistent).await;
        writer.set(&node).await;
        assert_eq!(moved.drain_events().await, [(DataChanged, node)]);
    }

    async fn the_deleted_nodes_of_an_ended_session_are_reported(backend: Backend) {
        let server = backend.start().await;
        let (mut watcher, mut owner) = (Peer::of(&server).await, Peer::of(&server).await);
        let nodes = ["a", "b", "c"].map(|name| server.path(name));
        watcher.stay(server.root(), WatchMode::PersistentRecursive).await;
        for path in &nodes {
            owner.create_as(path, CreateMode::Ephemeral, Acl::open()).await;
        }
        watcher.drain_events().await;
        owner.call(Request::CloseSession).await.unwrap();
        let expected: Vec<_> = nodes.iter().map(|path| (path.clone(), Deleted as i32)).collect();
        assert_eq!(watcher.drain_sorted_events().await, expected);
    }
}
