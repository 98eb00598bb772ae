//! What each recipe is for, in each dialect.

use crate::dialects;
use docent::cache::{ChildrenCache, TreeCache};
use docent::discovery::Registry;
use docent::{Config, Counter, CreateMode, Election, ErrorKind, Instance, Membership, Mutex, Queue, RwLock};
use docent_battery::{Backend, Dialect};
use docent_tests::{builder, connect, soon, until};

dialects! {
    async fn locks_exclude_each_other_and_their_fences_increase(dialect: Dialect) {
        let server = Backend::As(dialect).start().await;
        let (one, other) = (connect(&server).await, connect(&server).await);
        let first = soon(Mutex::new(&one, "/locks/a").unwrap().acquire()).await.unwrap();
        let second = Mutex::new(&other, "/locks/a").unwrap();
        assert!(second.try_acquire().await.is_err());
        let fence = first.fence();
        let (released, second) = tokio::join!(first.release(), soon(second.acquire()));
        released.unwrap();
        assert!(second.unwrap().fence() > fence);
        let lock = RwLock::new(&one, "/locks/b").unwrap();
        let readers = (soon(lock.read()).await.unwrap(), soon(lock.read()).await.unwrap());
        drop(readers);
        soon(lock.write()).await.unwrap().release().await.unwrap();
    }

    async fn a_leader_is_followed_by_the_next(dialect: Dialect) {
        let server = Backend::As(dialect).start().await;
        let (one, other) = (connect(&server).await, connect(&server).await);
        let leader = soon(Election::new(&one, "/election").unwrap().campaign()).await.unwrap();
        let next = Election::new(&other, "/election").unwrap();
        let (resigned, next) = tokio::join!(leader.resign(), soon(next.campaign()));
        resigned.unwrap();
        assert!(next.unwrap().is_held());
    }

    async fn items_are_handed_out_in_order_and_acknowledged(dialect: Dialect) {
        let server = Backend::As(dialect).start().await;
        let client = connect(&server).await;
        let queue: Queue<u64> = Queue::new(&client, "/queue").unwrap();
        for item in 0..10 {
            queue.put(&item).await.unwrap();
        }
        for item in 0..10 {
            let delivery = soon(queue.take()).await.unwrap();
            assert_eq!(delivery.item(), &item);
            delivery.ack().await.unwrap();
        }
        assert!(queue.is_empty().await.unwrap());
    }

    async fn registrations_and_members_come_and_go(dialect: Dialect) {
        let server = Backend::As(dialect).start().await;
        let (client, viewer) = (connect(&server).await, connect(&server).await);
        let registry = |client| Registry::new(client, "/services").unwrap();
        let view = soon(registry(&viewer).service("orders")).await.unwrap();
        let instance = Instance::new("orders", "10.0.0.7", 80);
        let registration = registry(&client).register(instance).await.unwrap();
        until(async || view.instances().len() == 1).await;
        let group = Membership::new(&viewer, "/group").unwrap();
        let members = soon(group.members()).await.unwrap();
        let member = Membership::new(&client, "/group").unwrap().join("a", "data").await.unwrap();
        until(async || members.get("a").is_some()).await;
        registration.deregister().await.unwrap();
        member.leave().await.unwrap();
        until(async || view.instances().is_empty() && members.get("a").is_none()).await;
    }

    async fn values_counters_and_caches_follow_each_change(dialect: Dialect) {
        let server = Backend::As(dialect).start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let config: Config<u64> = Config::new(&client, "/config/limit").unwrap();
        config.publish(&1).await.unwrap();
        let mut subscription = soon(Config::<u64>::new(&other, "/config/limit").unwrap().subscribe()).await.unwrap();
        config.publish(&2).await.unwrap();
        while **subscription.current() != 2 {
            soon(subscription.changed()).await.unwrap().unwrap();
        }
        let counter = Counter::new(&client, "/count").unwrap();
        for _ in 0..5 {
            counter.add(1).await.unwrap();
        }
        assert_eq!(counter.get().await.unwrap(), 5);
        let watching = builder(&server, server.connect_string()).persistent_watches().connect().await.unwrap();
        for client in [&other, &watching] {
            let root = format!("/tree-{}", client.session_id().unwrap());
            client.create(&format!("{root}/a/b"), "1", CreateMode::Persistent).await.unwrap();
            let (tree, children) = (TreeCache::new(client, &root).unwrap(), ChildrenCache::new(client, &root).unwrap());
            soon(async { (tree.ready().await.unwrap(), children.ready().await.unwrap()) }).await;
            client.set(&format!("{root}/a/b"), "2", None).await.unwrap();
            client.create(&format!("{root}/c"), "3", CreateMode::Persistent).await.unwrap();
            until(async || children.current().len() == 2 && tree.current().len() == 4).await;
        }
    }

    async fn a_created_node_is_returned_with_its_own_stat(dialect: Dialect) {
        let server = Backend::As(dialect).start().await;
        let client = connect(&server).await;
        for mode in [CreateMode::Persistent, CreateMode::PersistentSequential, CreateMode::Ephemeral] {
            let created = client.create("/deep/er/node", "data", mode).await.unwrap();
            assert_eq!(created.stat, client.exists(&created.path).await.unwrap().unwrap(), "{mode}");
            client.delete(&created.path, None).await.unwrap();
        }
    }

    async fn a_promise_that_the_servers_cannot_keep_is_refused_by_name(dialect: Dialect) {
        let server = Backend::As(dialect).start().await;
        let client = connect(&server).await;
        let made = client.create("/container", "", CreateMode::Container).await;
        if matches!(dialect, Dialect::ZooKeeper34 | Dialect::Keeper2025) {
            let error = made.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains("containers"), "{error}");
        } else {
            assert_eq!(made.unwrap().stat.owner, None);
            assert_eq!(client.exists("/container").await.unwrap().unwrap().owner, None);
        }
        let error = client.who_am_i().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}
