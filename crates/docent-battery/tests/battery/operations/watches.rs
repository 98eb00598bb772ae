use super::{Peer, secret};
use docent_battery::{Backend, both_backends_in_real_time};
use docent_proto::EventKind::{ChildrenChanged, Created, DataChanged, Deleted};
use docent_proto::{Acl, Code, CreateMode, Request, Response, WatchKind, WatchMode, Watches};

/// The digest of `user:secret`.
const USER: &str = "user:5w9W4eL3797Y4Wq8AcKUPPk8ha4=";

both_backends_in_real_time! {
    async fn a_persistent_watch_tells_each_change_of_the_node_and_of_its_children(backend: Backend) {
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
            let told = [Created, DataChanged, DataChanged, ChildrenChanged, ChildrenChanged, Deleted];
            assert_eq!(watcher.news().await, told.map(|kind| (kind, node.clone())));
        }
        // Its own changes are told, too.
        watcher.create(&node).await;
        assert_eq!(watcher.news().await, [(Created, node)]);
    }

    async fn a_recursive_watch_tells_of_all_nodes_below_but_of_no_sets_of_children(backend: Backend) {
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
        let gone = [deep.clone(), child.clone(), node.clone()].map(|path| (Deleted, path));
        let told: Vec<_> = [both(&node), both(&child), both(&deep)].into_iter().flatten().chain(gone).collect();
        assert_eq!(watcher.news().await, told);
    }

    async fn a_change_is_told_once_however_many_watches_see_it(backend: Backend) {
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
            watcher.news().await,
            [(Created, node.clone()), (DataChanged, node.clone()), (Deleted, node)]
        );
    }

    async fn a_watch_takes_the_place_of_one_of_another_mode(backend: Backend) {
        let server = backend.start().await;
        let (mut watcher, mut writer) = (Peer::of(&server).await, Peer::of(&server).await);
        let (node, child) = (server.path("a"), server.path("a/b"));
        writer.create(&node).await;
        watcher.stay(&node, WatchMode::Persistent).await;
        // From here on the watch on the data comes true once, that on the children stays.
        watcher.watch_data(&node).await;
        writer.set(&node).await;
        writer.set(&node).await;
        writer.create(&child).await;
        assert_eq!(watcher.news().await, [(DataChanged, node.clone()), (ChildrenChanged, node.clone())]);
        watcher.stay(&node, WatchMode::PersistentRecursive).await;
        writer.set(&child).await;
        writer.delete(&child).await;
        assert_eq!(watcher.news().await, [(DataChanged, child.clone()), (Deleted, child.clone())]);
        // A recursive watch that lost its half on the data is told of deletions by the other.
        watcher.watch_data(&node).await;
        writer.create(&child).await;
        writer.set(&child).await;
        writer.delete(&child).await;
        assert_eq!(watcher.news().await, [(Deleted, child.clone())]);
        watcher.stay(&node, WatchMode::Persistent).await;
        writer.create(&child).await;
        assert_eq!(watcher.news().await, [(ChildrenChanged, node)]);
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
        assert_eq!(watcher.news().await, []);

        watcher.stay(&node, WatchMode::Persistent).await;
        assert_eq!(watcher.remove(&node, WatchKind::Data).await, Ok(()));
        writer.set(&node).await;
        writer.delete(&child).await;
        assert_eq!(watcher.news().await, [(ChildrenChanged, node.clone())]);
        assert_eq!(watcher.remove(&node, WatchKind::Any).await, Ok(()));
        watcher.stay(&node, WatchMode::PersistentRecursive).await;
        assert_eq!(watcher.remove(&child, WatchKind::Any).await, Err(Code::NO_WATCHER));
        assert_eq!(watcher.remove(&node, WatchKind::Any).await, Ok(()));
        writer.create(&child).await;
        writer.set(&node).await;
        assert_eq!(watcher.news().await, []);
        assert_eq!(watcher.remove(&node, WatchKind::Any).await, Err(Code::NO_WATCHER));
    }

    async fn a_watch_is_looked_for_by_its_kind_whoever_set_it(backend: Backend) {
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

    async fn nobody_is_told_of_a_node_that_they_may_not_read(backend: Backend) {
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
        assert_eq!(user.news().await, all);
        assert_eq!(recursive.news().await, [(Created, below.clone()), (Deleted, below)]);
        assert_eq!(persistent.news().await, [(ChildrenChanged, node.clone()), (ChildrenChanged, node)]);
    }

    async fn watches_are_set_again_and_those_that_come_true_once_tell_what_was_missed(backend: Backend) {
        let server = backend.start().await;
        let mut writer = Peer::of(&server).await;
        let [old, changed, gone, anew] = ["old", "changed", "gone", "new"].map(|name| server.path(name));
        for path in [&old, &changed, &gone] {
            writer.create(path).await;
        }
        let relative_zxid = writer.0.ask(Request::Ping).await.unwrap().header.zxid;
        writer.set(&changed).await;
        writer.create(&format!("{changed}/child")).await;
        writer.delete(&gone).await;
        writer.create(&anew).await;
        let mut watcher = Peer::of(&server).await;
        let once = Watches {
            relative_zxid,
            data: vec![old.clone(), changed.clone(), gone.clone()],
            exist: vec![anew.clone(), gone.clone()],
            child: vec![old.clone(), changed.clone(), gone.clone()],
        };
        let (persistent, recursive) = (vec![changed.clone(), gone.clone()], vec![anew.clone()]);
        let again = Request::SetWatches2 { once, persistent, recursive };
        assert_eq!(watcher.call(again).await, Ok(Response::Empty));
        let missed = [
            (DataChanged, changed.clone()),
            (Deleted, gone.clone()),
            (Created, anew.clone()),
            (ChildrenChanged, changed.clone()),
            (Deleted, gone.clone()),
        ];
        assert_eq!(watcher.news().await, missed);
        for path in [&old, &changed, &anew] {
            writer.set(path).await;
            writer.set(path).await;
        }
        writer.create(&gone).await;
        writer.create(&format!("{anew}/child")).await;
        let told = [
            (DataChanged, old),
            (DataChanged, changed.clone()),
            (DataChanged, changed),
            (DataChanged, anew.clone()),
            (DataChanged, anew.clone()),
            (Created, gone),
            (Created, format!("{anew}/child")),
        ];
        assert_eq!(watcher.news().await, told);
    }

    async fn one_request_sets_watches_on_several_nodes_at_any_time(backend: Backend) {
        let server = backend.start().await;
        let (mut watcher, mut writer) = (Peer::of(&server).await, Peer::of(&server).await);
        let [old, changed, gone, anew] = ["old", "changed", "gone", "new"].map(|name| server.path(name));
        for path in [&old, &changed, &gone] {
            writer.create(path).await;
        }
        writer.create_as(&anew, CreateMode::Persistent, secret(USER)).await;
        let relative_zxid = writer.0.ask(Request::Ping).await.unwrap().header.zxid;
        watcher.watch_data(&old).await;
        writer.set(&changed).await;
        writer.delete(&gone).await;
        let data = vec![old.clone(), changed.clone(), gone.clone(), anew.clone()];
        let watches = Watches { relative_zxid, data, ..Watches::default() };
        assert_eq!(watcher.call(Request::SetWatches(watches)).await, Ok(Response::Empty));
        assert_eq!(watcher.news().await, [(DataChanged, changed.clone()), (Deleted, gone.clone())]);
        // The two that fired have left nothing, and one node is watched once.
        for path in [&changed, &old] {
            writer.set(path).await;
            writer.set(path).await;
        }
        writer.create(&gone).await;
        assert_eq!(watcher.news().await, [(DataChanged, old)]);
        // The watch on a node that the client may not read is there, but tells nothing.
        assert_eq!(watcher.check(&anew, WatchKind::Data).await, Ok(()));
        writer.delete(&anew).await;
        assert_eq!(watcher.news().await, []);
    }

    async fn watches_that_stay_end_with_their_link(backend: Backend) {
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
        assert_eq!(moved.news().await, []);
        moved.stay(&node, WatchMode::Persistent).await;
        writer.set(&node).await;
        assert_eq!(moved.news().await, [(DataChanged, node)]);
    }

    async fn the_nodes_of_a_session_that_ends_are_told_of(backend: Backend) {
        let server = backend.start().await;
        let (mut watcher, mut owner) = (Peer::of(&server).await, Peer::of(&server).await);
        let nodes = ["a", "b", "c"].map(|name| server.path(name));
        watcher.stay(server.root(), WatchMode::PersistentRecursive).await;
        for path in &nodes {
            owner.create_as(path, CreateMode::Ephemeral, Acl::open()).await;
        }
        watcher.news().await;
        owner.call(Request::CloseSession).await.unwrap();
        let told: Vec<_> = nodes.iter().map(|path| (path.clone(), Deleted as i32)).collect();
        assert_eq!(watcher.sorted_news().await, told);
    }
}
