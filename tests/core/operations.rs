//! Operations of a client on nodes.

use crate::{both_backends, builder, connect};
use docent::client::ParentKind;
use docent::node::{Transaction, TransactionResult};
use docent::{
    Barrier, Counter, CreateMode, DoubleBarrier, Election, ErrorKind, Instance, Membership, Mutex, Queue,
    Registry, RwLock, Semaphore, SimpleQueue,
};
use docent_battery::{Backend, Proxy, Rule};
use docent_proto::OpCode;
use docent_tests::soon;

both_backends! {
    async fn nodes_are_created_read_changed_listed_and_deleted(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let created = client.create("/a", "one", CreateMode::Persistent).await.unwrap();
        assert_eq!(created.path, "/a");
        let node = client.get("/a").await.unwrap();
        assert_eq!((node.data.as_ref(), node.stat.version), (b"one".as_ref(), 0));
        assert_eq!(node.stat, created.stat);
        let stat = client.set("/a", "two", 0).await.unwrap();
        assert_eq!(stat.version, 1);
        assert_eq!(client.exists("/a").await.unwrap(), Some(stat));
        client.create("/a/b", "", CreateMode::Ephemeral).await.unwrap();
        let children = client.children("/a").await.unwrap();
        assert_eq!((children.names, children.stat.num_children), (vec!["b".to_owned()], 1));
        client.sync("/a").await.unwrap();
        client.delete("/a/b", None).await.unwrap();
        client.delete("/a", 1).await.unwrap();
        assert_eq!(client.exists("/a").await.unwrap(), None);
    }

    async fn nodes_are_created_in_all_modes(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let session = client.session_id();
        for (mode, path, owner) in [
            (CreateMode::Persistent, "/m/persistent", None),
            (CreateMode::Ephemeral, "/m/ephemeral", session),
            (CreateMode::PersistentSequential, "/m/n-", None),
            (CreateMode::EphemeralSequential, "/m/n-", session),
            (CreateMode::Container, "/m/container", None),
        ] {
            let created = client.create(path, "", mode).await.unwrap();
            assert_eq!(created.stat.owner, owner, "{mode:?}");
            assert!(created.path.starts_with(path));
        }
        let mut names = client.children("/m").await.unwrap().names;
        names.sort();
        assert_eq!(names, ["container", "ephemeral", "n-0000000002", "n-0000000003", "persistent"]);
        let ttl = CreateMode::PersistentTtl(std::time::Duration::from_secs(1));
        assert_eq!(client.create("/m/ttl", "", ttl).await.unwrap_err().kind(), ErrorKind::Unsupported);
    }

    async fn errors_of_the_server_name_operation_and_path(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        client.create("/a", "", CreateMode::Persistent).await.unwrap();
        client.create("/a/b", "", CreateMode::Ephemeral).await.unwrap();
        let errors = [
            (client.get("/none").await.unwrap_err(), "get", "/none", ErrorKind::NoNode),
            (client.create("/a", "", CreateMode::Persistent).await.unwrap_err(), "create", "/a", ErrorKind::NodeExists),
            (client.set("/a", "", 7).await.unwrap_err(), "set", "/a", ErrorKind::BadVersion),
            (client.delete("/a", None).await.unwrap_err(), "delete", "/a", ErrorKind::NotEmpty),
            (
                client.create("/a/b/c", "", CreateMode::Persistent).await.unwrap_err(),
                "create", "/a/b/c", ErrorKind::NoChildrenForEphemerals,
            ),
        ];
        for (error, operation, path, kind) in errors {
            assert_eq!((error.operation(), error.path(), error.kind()), (operation, Some(path), kind));
            assert!(!error.may_have_applied());
        }
    }

    async fn missing_parents_are_created_every_time(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        for _ in 0..2 {
            client.create("/x/y/z", "", CreateMode::Persistent).await.unwrap();
            for path in ["/x/y/z", "/x/y", "/x"] {
                // The server may have deleted the empty container already.
                client.ensure_absent(path).await.unwrap();
            }
        }
    }

    async fn a_chroot_and_a_namespace_are_created_on_demand(backend: Backend) {
        let server = backend.start().await;
        let client = server.client_builder(format!("{}{}/chroot", server.connect_string(), server.root()))
            .namespace("/name").connect().await.unwrap();
        assert_eq!(client.create("/a", "x", CreateMode::Persistent).await.unwrap().path, "/a");
        let outside = connect(&server).await;
        assert_eq!(outside.get("/chroot/name/a").await.unwrap().data, "x");
    }

    async fn parents_are_created_as_the_requested_kind(backend: Backend) {
        let server = backend.start().await;
        let (persistent, containers) = (server.proxy().await, server.proxy().await);
        let client = builder(&server, persistent.connect_string()).parents(ParentKind::Persistent).connect().await.unwrap();
        let other = builder(&server, containers.connect_string()).connect().await.unwrap();
        let made_containers = |proxy: &Proxy| proxy.trace().iter().any(|frame| frame.is_request(OpCode::CreateContainer));
        for (client, root) in [(&client, "/persistent"), (&other, "/container")] {
            let mutex = Mutex::new(client, &format!("{root}/lock")).unwrap();
            soon(soon(mutex.acquire()).await.unwrap().release()).await.unwrap();
            client.create(&format!("{root}/x/y"), "", CreateMode::Persistent).await.unwrap();
            client.delete(&format!("{root}/x/y"), None).await.unwrap();
        }
        assert!(!made_containers(&persistent) && made_containers(&containers));
        // The servers delete empty containers and nothing else.
        for path in ["/container/lock", "/container/x", "/container"] {
            soon(async { while other.exists(path).await.unwrap().is_some() {} }).await;
        }
        for path in ["/persistent/lock", "/persistent/x"] {
            assert!(client.exists(path).await.unwrap().is_some(), "{path}");
        }
    }

    async fn no_recipe_creates_containers_if_parents_must_be_persistent(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).parents(ParentKind::Persistent).connect().await.unwrap();
        assert!(soon(Barrier::new(&client, "/barriers/start").unwrap().set()).await.unwrap());
        soon(SimpleQueue::new(&client, "/simple/queue").unwrap().put("item")).await.unwrap();
        soon(Queue::<String>::new(&client, "/queues/queue").unwrap().put(&"item".to_owned())).await.unwrap();
        drop(soon(Semaphore::new(&client, "/semaphores/one", 1).unwrap().acquire()).await.unwrap());
        drop(soon(RwLock::new(&client, "/locks/both").unwrap().read()).await.unwrap());
        drop(soon(DoubleBarrier::new(&client, "/barriers/double", 1).unwrap().enter()).await.unwrap());
        drop(soon(Election::new(&client, "/elections/one").unwrap().campaign()).await.unwrap());
        soon(Counter::<i64>::new(&client, "/counters/one").unwrap().increment()).await.unwrap();
        let registry = Registry::new(&client, "/services").unwrap();
        let instance = Instance::new("orders", "10.0.0.7", 8080).payload(());
        soon(registry.register(instance)).await.unwrap().deregister().await.unwrap();
        drop(soon(Membership::new(&client, "/groups/one").unwrap().join("me", "")).await.unwrap());
        assert!(proxy.trace().iter().all(|frame| !frame.is_request(OpCode::CreateContainer)));
    }

    async fn a_transaction_is_applied_as_a_whole_or_not_at_all(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        client.create("/a", "", CreateMode::Persistent).await.unwrap();
        let error = client.transaction()
            .create("/a/b", "", CreateMode::Persistent).set("/a", "x", 5).delete("/none", None)
            .commit().await.unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::BadVersion, Some("/a")));
        assert_eq!(client.exists("/a/b").await.unwrap(), None);

        let results = client.transaction()
            .check("/a", 0).create("/a/b-", "", CreateMode::PersistentSequential).set("/a", "x", 0).delete("/a/b-0000000000", 0)
            .commit().await.unwrap();
        assert!(matches!(
            &results[..],
            [TransactionResult::Checked, TransactionResult::Created(created), TransactionResult::Set(stat), TransactionResult::Deleted]
            if created.path == "/a/b-0000000000" && stat.version == 1
        ), "{results:?}");
    }

    async fn an_error_of_a_transaction_shows_the_path_that_it_was_given(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let chroot = format!("{}{}", proxy.connect_string(), server.path("chroot"));
        let client = builder(&server, chroot).namespace("/name").connect().await.unwrap();
        client.create("/a", "", CreateMode::Persistent).await.unwrap();
        let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        let lost = || proxy.add(Rule::on(OpCode::Multi).path(|path| path.ends_with("/a")).reset_after());
        let set = |transaction: Transaction| transaction.set("/a", "x", None);
        lost();
        let unknown = soon(set(client.transaction()).commit()).await.unwrap_err();
        lost();
        let unknown_of_guard = soon(set(guard.transaction()).commit()).await.unwrap_err();
        for (error, kind) in [
            (unknown, ErrorKind::OutcomeUnknown),
            (unknown_of_guard, ErrorKind::OutcomeUnknown),
            (client.transaction().set("/a", "", 7).commit().await.unwrap_err(), ErrorKind::BadVersion),
            (guard.transaction().set("/a", "", 7).commit().await.unwrap_err(), ErrorKind::BadVersion),
        ] {
            assert_eq!((error.kind(), error.path()), (kind, Some("/a")), "{error}");
        }
        let large = vec![0; 1_100_000];
        for transaction in [client.transaction(), guard.transaction()] {
            let large = || large.clone();
            let error = transaction.set("/a", large(), None).commit().await.unwrap_err();
            assert_eq!((error.kind(), error.path()), (ErrorKind::TooLarge, Some("/a")), "{error}");
            let error = client.transaction().set("/a", large(), None).commit_exactly().await.unwrap_err();
            assert_eq!((error.kind(), error.path()), (ErrorKind::TooLarge, Some("/a")), "{error}");
        }
    }

    async fn reads_survive_a_broken_link_and_writes_without_a_reply_are_reported_as_unknown(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        client.create("/a", "", CreateMode::Persistent).await.unwrap();
        proxy.add(Rule::on(OpCode::GetData).reset_before());
        proxy.add(Rule::on(OpCode::GetData).reset_after());
        soon(client.get("/a")).await.unwrap();

        proxy.add(Rule::on(OpCode::SetData).reset_after());
        let error = soon(client.set("/a", "x", None)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
        assert!(error.may_have_applied() && !error.is_retryable());
        assert_eq!(soon(client.get("/a")).await.unwrap().data, "x", "the write must have been applied");
    }

    async fn requests_made_while_disconnected_are_sent_later_unless_given_up(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        proxy.cut().await;
        client.state().reached(docent::ConnectionState::Suspended).await;
        let given_up = client.with_operation_timeout(std::time::Duration::from_millis(50));
        let error = soon(given_up.create("/given-up", "", CreateMode::Persistent)).await.unwrap_err();
        assert_eq!((error.kind(), error.may_have_applied()), (ErrorKind::Timeout, false));
        assert!(std::error::Error::source(&error).is_some(), "the error must have a source");
        let (created, _) = soon(async {
            tokio::join!(client.create("/waited", "", CreateMode::Persistent), async {
                proxy.heal().await.unwrap();
            })
        }).await;
        created.unwrap();
        assert_eq!(client.exists("/given-up").await.unwrap(), None);
    }
}
