//! Deletion of a node with its whole subtree, and nodes that are created if they are missing.

use crate::children_cache::all_but_read;
use crate::{builder, connect};
use docent::client::ParentKind;
use docent::node::{Acl, Permissions};
use docent::{Client, CreateMode, ErrorKind};
use docent_battery::{Backend, Direction, Proxy, Rule, TestServer, Traced, both_backends};
use docent_proto::OpCode;
use docent_tests::soon;
use std::error::Error as _;
use std::time::Duration;

/// Creates nodes whose parents remain when they are empty, unlike containers, which the servers delete.
async fn make(client: &Client, paths: impl IntoIterator<Item = String>) {
    for path in paths {
        let above: Vec<_> = path.match_indices('/').skip(1).map(|(at, _)| &path[..at]).collect();
        for path in above.into_iter().chain([&*path]) {
            client.ensure_path(path).await.unwrap();
        }
    }
}

/// Creates `/t` and 97 nodes below it: six folders with ten nodes each, and nested folders.
async fn make_tree(client: &Client) {
    make(client, (0..6).flat_map(|folder| (0..10).map(move |n| format!("/t/f{folder}/n{n}")))).await;
    make(client, (0..30).map(|n| format!("/t/deep/a/b/c/d/e/n{n}"))).await;
}

const NODES: usize = 1 + 6 * 11 + 6 + 30;

/// An access control list that permits no client to delete children.
fn all_but_delete() -> Acl {
    let permissions = Permissions::READ | Permissions::WRITE | Permissions::CREATE | Permissions::ADMIN;
    Acl::new(permissions, "world", "anyone")
}

/// Connects a client through its own proxy and creates the session's marker.
async fn over_proxy(server: &TestServer) -> (Client, Proxy) {
    let proxy = server.proxy().await;
    let client = builder(server, proxy.connect_string()).connect().await.unwrap();
    client.transaction().create("/warm", "", CreateMode::Persistent).commit_exactly().await.unwrap();
    (client, proxy)
}

/// Number of requests after the first `before` frames, without pings.
fn requests_since(proxy: &Proxy, before: usize) -> usize {
    let requests = |frame: &&Traced| frame.direction == Direction::ToServer && frame.op != Some(OpCode::Ping);
    proxy.trace()[before..].iter().filter(requests).count()
}

both_backends! {
    async fn a_tree_is_deleted_and_counted(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        make_tree(&client).await;
        make(&client, ["/tt".to_owned()]).await;
        assert_eq!(soon(client.delete_all("/t")).await.unwrap(), NODES);
        assert_eq!(client.exists("/t").await.unwrap(), None);
        assert!(client.exists("/tt").await.unwrap().is_some());
        assert_eq!(soon(client.delete_all("/t")).await.unwrap(), 0);
        assert_eq!(soon(client.delete_all("/tt")).await.unwrap(), 1);
        for bad in ["/", "a", "/a/"] {
            let error = client.delete_all(bad).await.unwrap_err();
            assert_eq!((error.kind(), error.deleted()), (ErrorKind::InvalidInput, 0));
        }
    }

    async fn a_wide_folder_goes_in_batches(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = over_proxy(&server).await;
        for batch in 0..10 {
            let all = (0..100).fold(client.transaction(), |all, n| {
                all.create(&format!("/warm/n{batch}-{n}"), "", CreateMode::Persistent)
            });
            all.commit().await.unwrap();
        }
        let before = proxy.trace().len();
        assert_eq!(soon(client.delete_all("/warm")).await.unwrap(), 1001);
        // One listing, and 1,000 nodes at 128 per request.
        let sent = requests_since(&proxy, before);
        assert!(sent <= 9, "{sent} requests");
    }

    async fn lost_replies_neither_stop_a_deletion_nor_count_twice(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = over_proxy(&server).await;
        for (op, nth) in [(OpCode::Multi, 1), (OpCode::Multi, 3), (OpCode::GetChildren2, 2), (OpCode::Exists, 5)] {
            for after in [true, false] {
                make_tree(&client).await;
                let request = Rule::on(op).path(|path| path.contains("/t")).nth(nth);
                let fired = proxy.add(if after { request.reset_after() } else { request.reset_before() });
                assert_eq!(soon(client.delete_all("/t")).await.unwrap(), NODES, "{op:?} {after}");
                assert!(fired.has_fired(), "{op:?}");
            }
        }
    }

    async fn a_session_that_ends_meanwhile_does_not_stop_it(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = over_proxy(&server).await;
        make_tree(&client).await;
        let held = proxy.add(Rule::on(OpCode::Multi).path(|path| path.contains("/t/")).nth(3).hold());
        let session = client.session_id().unwrap();
        let (deleted, ()) = tokio::join!(soon(client.delete_all("/t")), async {
            held.fired().await;
            server.expire(session).await.unwrap();
            proxy.heal().await.unwrap();
        });
        assert_eq!(deleted.unwrap(), NODES);
        assert_eq!(client.exists("/t").await.unwrap(), None);
    }

    async fn nodes_that_appear_meanwhile_are_deleted_too(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let (client, proxy) = over_proxy(&server).await;
        make_tree(&client).await;
        let listed = |nth| Rule::on(OpCode::Multi).path(|path| path.contains("/t/")).nth(nth).hold();
        let held = proxy.add(listed(2));
        let deletion = tokio::spawn({
            let client = client.clone();
            async move { client.delete_all("/t").await }
        });
        soon(held.fired()).await;
        make(&other, (0..5).map(|n| format!("/t/f0/late{n}/below"))).await;
        make(&other, ["/t/late".to_owned()]).await;
        proxy.heal().await.unwrap();
        let deleted = soon(deletion).await.unwrap().unwrap();
        assert!(deleted > NODES, "{deleted}");
        assert_eq!(client.exists("/t").await.unwrap(), None);
    }

    async fn nodes_that_may_not_be_deleted_are_named_and_the_others_deleted(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        make_tree(&client).await;
        client.set_acl("/t/f3", [all_but_delete()], None).await.unwrap();
        let error = soon(client.delete_all("/t")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoAuth);
        assert_eq!(error.deleted(), NODES - 12);
        let left: Vec<_> = error.left().iter().map(|error| error.path().unwrap()).collect();
        assert!(left.len() == 1 && left[0].starts_with("/t/f3/n"), "{left:?}");
        assert!(!error.is_retryable() && !error.may_have_applied());
        assert!(error.to_string().contains(left[0]) && error.source().is_some());
        assert_eq!(error.error().path(), Some(left[0]));
        assert_eq!(client.children("/t").await.unwrap().names, ["f3"]);
        assert_eq!(client.children("/t/f3").await.unwrap().names.len(), 10);
        client.set_acl("/t/f3", [Acl::open_unsafe()], None).await.unwrap();
        assert_eq!(soon(client.delete_all("/t")).await.unwrap(), 12);
    }

    async fn a_folder_that_may_not_be_listed_is_deleted_if_it_is_empty(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        make(&client, ["/t/empty", "/t/full/n"].map(str::to_owned)).await;
        for path in ["/t/empty", "/t/full"] {
            client.set_acl(path, [all_but_read()], None).await.unwrap();
        }
        let error = soon(client.delete_all("/t")).await.unwrap_err();
        assert_eq!((error.kind(), error.deleted()), (ErrorKind::NoAuth, 1));
        assert_eq!(error.left()[0].path(), Some("/t/full"));
        assert_eq!(client.children("/t").await.unwrap().names, ["full"]);
        assert_eq!(soon(client.delete_all("/t/full/n")).await.unwrap(), 1);
        assert_eq!(soon(client.delete_all("/t/full")).await.unwrap(), 1, "the folder must be empty now");
    }

    async fn a_folder_that_other_clients_keep_filling_is_given_up(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        make_tree(&client).await;
        let fill = async {
            for n in 0.. {
                let parent = format!("/t/f1/more{n}");
                // Refused while the folder does not exist.
                let _ = other.transaction().create(&parent, "", CreateMode::Persistent).commit().await;
                let _ = other.create("/t/f1", "", CreateMode::Persistent).await;
            }
        };
        // Either everything is deleted at one moment, or the error names the folder.
        let deleted = tokio::select! {
            deleted = soon(client.delete_all("/t")) => deleted,
            () = fill => unreachable!("the folder is filled without end"),
        };
        if let Err(error) = deleted {
            assert_eq!(error.kind(), ErrorKind::NotEmpty);
        }
    }

    async fn a_dropped_deletion_leaves_a_part_that_the_next_one_deletes(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        for polls in 1..30 {
            make(&client, (0..3).map(|n| format!("/t/f{n}/n"))).await;
            let mut deletion = Box::pin(client.delete_all("/t"));
            for _ in 0..polls {
                if tokio::time::timeout(Duration::from_millis(1), &mut deletion).await.is_ok() {
                    break;
                }
            }
            drop(deletion);
            soon(client.delete_all("/t")).await.unwrap();
            assert_eq!(client.exists("/t").await.unwrap(), None);
        }
    }

    async fn a_path_is_created_once_and_remains(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = over_proxy(&server).await;
        client.ensure_path("/a/b/c").await.unwrap();
        let made = client.exists("/a/b/c").await.unwrap().unwrap();
        let before = proxy.trace().len();
        client.ensure_path("/a/b/c").await.unwrap();
        assert_eq!(requests_since(&proxy, before), 1);
        assert_eq!(client.exists("/a/b/c").await.unwrap(), Some(made));
        client.ensure_path("/").await.unwrap();
        for lost in [true, false] {
            let request = Rule::on(OpCode::Multi).path(|path| path.ends_with("/lost"));
            proxy.add(if lost { request.reset_after() } else { request.reset_before() });
            soon(client.ensure_path("/a/lost")).await.unwrap();
            client.delete("/a/lost", None).await.unwrap();
        }
        client.create("/a/ephemeral", "", CreateMode::Ephemeral).await.unwrap();
        let error = soon(client.ensure_path("/a/ephemeral/x")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoChildrenForEphemerals);
        assert_eq!(client.ensure_path("a").await.unwrap_err().kind(), ErrorKind::InvalidInput);
        soon(client.close()).await;
        assert_eq!(client.ensure_path("/b").await.unwrap_err().kind(), ErrorKind::Closed);
    }

    async fn many_clients_create_one_path(backend: Backend) {
        let server = backend.start().await;
        let settings = builder(&server, server.connect_string()).parents(ParentKind::Persistent);
        let client = settings.connect().await.unwrap();
        let all = (0..20).map(|_| client.ensure_path("/many/a/b"));
        for made in soon(futures_util::future::join_all(all)).await {
            made.unwrap();
        }
        assert!(client.exists("/many/a/b").await.unwrap().is_some());
    }

    async fn a_node_is_created_or_set_with_the_same_call(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = over_proxy(&server).await;
        let created = client.create_or_set("/a/b", "1", CreateMode::Persistent).await.unwrap();
        let stat = client.exists("/a/b").await.unwrap().unwrap();
        assert!(created.is_new && created.mzxid == stat.mzxid);
        assert_eq!(created.stat.map(|stat| (stat.version, stat.czxid)), Some((0, stat.czxid)));
        let before = proxy.trace().len();
        let set = client.create_or_set("/a/b", "2", CreateMode::Container).await.unwrap();
        assert_eq!(requests_since(&proxy, before), 1);
        let node = client.get("/a/b").await.unwrap();
        assert_eq!((set.is_new, set.stat, &node.data[..]), (false, Some(node.stat), b"2".as_ref()));
        assert!(client.create_or_set("/c", "", CreateMode::Container).await.unwrap().is_new);
        for mode in [CreateMode::Ephemeral, CreateMode::PersistentSequential] {
            let error = client.create_or_set("/a/b", "", mode).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
        let ttl = CreateMode::PersistentTtl(Duration::ZERO);
        assert_eq!(client.create_or_set("/d", "", ttl).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    }

    async fn a_lost_reply_neither_doubles_nor_hides_what_was_created_or_set(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = over_proxy(&server).await;
        for round in 0..4_i32 {
            for lost in [true, false] {
                let request = Rule::on(OpCode::Multi).path(|path| path.ends_with("/a")).nth(1);
                let fired = proxy.add(if lost { request.reset_after() } else { request.reset_before() });
                let data = format!("{round}{lost}");
                let set = soon(client.create_or_set("/a", data.clone(), CreateMode::Persistent)).await.unwrap();
                let node = client.get("/a").await.unwrap();
                assert!(fired.has_fired() && node.data == data);
                assert_eq!(set.mzxid, node.stat.mzxid);
                assert_eq!(set.stat.map(|stat| stat.version), Some(node.stat.version));
                // In the first round, the set was refused because the node did not exist.
                assert_eq!(node.stat.version, 2 * round + i32::from(!lost));
            }
        }
    }

    async fn many_clients_create_or_set_one_node(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let all = (0..20).map(|n: i32| client.create_or_set("/a", n.to_string(), CreateMode::Persistent));
        let written = soon(futures_util::future::join_all(all)).await;
        let written: Vec<_> = written.into_iter().map(Result::unwrap).collect();
        assert_eq!(written.iter().filter(|written| written.is_new).count(), 1);
        assert_eq!(client.exists("/a").await.unwrap().unwrap().version, 19);
    }
}
