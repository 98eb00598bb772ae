//! Each recipe as a tenant uses it below its own folder, with all kinds of writes of the recipe.

use bytes::Bytes;
use docent::config::{NodeModel, SharedCount};
use docent::inspect::{Inspector, TimeSource};
use docent::locks::{Partitioner, TimedLease};
use docent::node::KeptNode;
use docent::queue::PutOptions;
use docent::{
    Barrier, Client, Config, Counter, CreateMode, DoubleBarrier, Election, Instance, Membership, MultiLock,
    Mutex, Queue, Registry, RwLock, Semaphore, SharedValue, SimpleQueue,
};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::error::Error;
use std::time::Duration;

type Done = Result<(), Box<dyn Error + Send + Sync>>;

/// A recipe as used below the folder `home`, by a client that has not written yet.
pub(crate) struct Recipe {
    pub(crate) name: &'static str,
    pub(crate) run: for<'a> fn(&'a Client, &'a str) -> BoxFuture<'a, Done>,
}

macro_rules! recipes {
    ($($name:literal: $function:ident,)+) => {
        /// All recipes.
        pub(crate) const RECIPES: &[Recipe] =
            &[$(Recipe { name: $name, run: |client, home| $function(client, home).boxed() },)+];
    };
}

recipes! {
    "put, take, acknowledge": queue,
    "purge, reschedule, dead letters": queue_by_hand,
    "simple queue": simple_queue,
    "publish, follow, roll back": config,
    "shared value and count": shared,
    "counter": counter,
    "typed node": typed_node,
    "register": register,
    "membership": membership,
    "ephemeral create, ensure_absent": ephemeral,
    "kept node": kept_node,
    "exact transaction, create_or_set, ensure_path": transaction,
    "check_clock": check_clock,
    "inspect": inspect,
    "mutex": mutex,
    "read/write lock": rw_lock,
    "semaphore": semaphore,
    "several locks": multi_lock,
    "timed lease": timed_lease,
    "partition": partition,
    "election": election,
    "barrier": barrier,
    "double barrier": double_barrier,
    "delete_all": delete_all,
}

async fn queue(client: &Client, home: &str) -> Done {
    let queue: Queue<u64> = Queue::new(client, &format!("{home}/queue"))?;
    queue.put(&1).await?;
    queue.put_all(&[2, 3]).await?;
    queue.take().await?.ack().await?;
    queue.take().await?.nack_now().await?;
    let delivery = queue.take().await?;
    delivery.transaction().create(&format!("{home}/effect"), "", CreateMode::Persistent).commit().await?;
    delivery.ack().await?;
    Ok(queue.take().await?.ack().await?)
}

async fn queue_by_hand(client: &Client, home: &str) -> Done {
    let queue: Queue<u64> = Queue::new(client, &format!("{home}/by-hand"))?;
    queue.put_all(&[1, 2, 3]).await?;
    let first = queue.list().await?.remove(0);
    assert!(queue.reschedule(&first.name, PutOptions::new().priority(7)).await?);
    queue.take().await?.reject("no").await?;
    let letters = queue.dead_letters();
    let letter = letters.list().await?.remove(0);
    letters.requeue(&letter).await?;
    assert_eq!(queue.purge().await?, 3);
    Ok(())
}

async fn simple_queue(client: &Client, home: &str) -> Done {
    let queue = SimpleQueue::new(client, &format!("{home}/simple"))?;
    queue.put("one").await?;
    assert_eq!(queue.take().await?, "one");
    Ok(())
}

async fn config(client: &Client, home: &str) -> Done {
    let config = Config::<u32>::new(client, &format!("{home}/limit"))?;
    config.publish(&1).await?;
    config.publish(&2).await?;
    let subscription = config.subscribe().await?;
    assert_eq!(**subscription.current(), 2);
    config.update(|limit| Some(limit.unwrap_or_default() + 1)).await?;
    assert!(!config.history().await?.is_empty());
    Ok(())
}

async fn shared(client: &Client, home: &str) -> Done {
    let motto = SharedValue::new(client, &format!("{home}/motto"), "a")?;
    let seen = motto.get().await?;
    motto.compare_and_set(&seen, "b").await?;
    let count = SharedCount::new(client, &format!("{home}/count"), 1)?;
    count.set(2).await?;
    Ok(())
}

async fn counter(client: &Client, home: &str) -> Done {
    let counter = Counter::<i64>::new(client, &format!("{home}/counter"))?;
    let before = counter.increment().await?.after;
    assert_eq!(counter.add(2).await?.after, before + 2);
    Ok(())
}

async fn typed_node(client: &Client, home: &str) -> Done {
    let model = NodeModel::<u32>::new(client, &format!("{home}/{{shop}}/order"))?;
    let node = model.node(&[("shop", "eu")])?;
    node.set(&1).await?;
    node.update(|value| Some(value? + 1)).await?;
    assert!(node.delete().await?);
    Ok(())
}

async fn register(client: &Client, home: &str) -> Done {
    let registry = Registry::new(client, &format!("{home}/services"))?;
    let registration = registry.register(Instance::new("orders", "10.0.0.7", 8080).id("1")).await?;
    assert_eq!(registry.names().await?, ["orders"]);
    let view = registry.typed_service::<String>("orders").await?;
    assert_eq!(view.instances().len(), 1);
    registration.update(Instance::new("orders", "10.0.0.8", 8080).id("1")).await?;
    registration.deregister().await?;
    Ok(())
}

async fn membership(client: &Client, home: &str) -> Done {
    let group = Membership::new(client, &format!("{home}/group"))?;
    let me = group.join("me", "data").await?;
    assert_eq!(group.members().await?.current().len(), 1);
    me.leave().await?;
    Ok(())
}

async fn ephemeral(client: &Client, home: &str) -> Done {
    let path = format!("{home}/ephemeral");
    client.create(&path, "", CreateMode::Ephemeral).await?;
    client.create(&format!("{home}/numbered-"), "", CreateMode::EphemeralSequential).await?;
    client.ensure_absent(&path).await?;
    assert_eq!(client.exists(&path).await?, None);
    Ok(())
}

async fn kept_node(client: &Client, home: &str) -> Done {
    let node = KeptNode::new(client, &format!("{home}/kept"), "1")?;
    node.present().await?;
    node.set("2");
    node.present().await?;
    node.remove().await?;
    Ok(())
}

async fn transaction(client: &Client, home: &str) -> Done {
    client.ensure_path(&format!("{home}/a/b")).await?;
    client.create_or_set(&format!("{home}/a/c"), "1", CreateMode::Persistent).await?;
    let set = client.transaction().set(&format!("{home}/a/b"), "2", None);
    set.delete(&format!("{home}/a/c"), None).commit_exactly().await?;
    assert_eq!(client.get(&format!("{home}/a/b")).await?.data, Bytes::from_static(b"2"));
    Ok(())
}

async fn check_clock(client: &Client, home: &str) -> Done {
    // The clock check has no path. In a tree with a closed root it needs a place that was found earlier.
    client.create(&format!("{home}/clock"), "", CreateMode::Ephemeral).await?;
    client.check_clock(Duration::from_millis(1)).await?;
    Ok(())
}

async fn inspect(client: &Client, home: &str) -> Done {
    client.create(&format!("{home}/seen"), "1", CreateMode::Ephemeral).await?;
    let report = Inspector::new(client).path(&format!("{home}/seen")).await?;
    assert_eq!(report.clock.map(|clock| clock.source), Some(TimeSource::OwnNode));
    Ok(())
}

async fn mutex(client: &Client, home: &str) -> Done {
    let mutex = Mutex::new(client, &format!("{home}/mutex"))?;
    let guard = mutex.acquire().await?;
    guard.verify().await?;
    let effect = format!("{home}/mutex-effect");
    guard.transaction().create(&effect, "", CreateMode::Ephemeral).commit_exactly().await?;
    guard.release().await?;
    mutex.try_acquire().await?.release().await?;
    Ok(())
}

async fn rw_lock(client: &Client, home: &str) -> Done {
    let lock = RwLock::new(client, &format!("{home}/rw"))?;
    let reader = lock.write().await?.downgrade().await?;
    let other = lock.read().await?;
    reader.release().await?;
    other.release().await?;
    Ok(())
}

async fn semaphore(client: &Client, home: &str) -> Done {
    let semaphore = Semaphore::new(client, &format!("{home}/semaphore"), 3)?;
    let two = semaphore.acquire_many(2).await?;
    semaphore.acquire().await?.release().await?;
    two.release().await?;
    Ok(())
}

async fn multi_lock(client: &Client, home: &str) -> Done {
    let one = Mutex::new(client, &format!("{home}/one"))?;
    let other = RwLock::new(client, &format!("{home}/other"))?;
    let both = MultiLock::new([one.into(), other.reading()])?.acquire().await?;
    both.release().await?;
    Ok(())
}

async fn timed_lease(client: &Client, home: &str) -> Done {
    let lease = TimedLease::new(client, &format!("{home}/lease"), Duration::from_secs(60))?;
    assert!(lease.try_obtain().await?.is_some());
    assert!(lease.give_back().await?);
    Ok(())
}

async fn partition(client: &Client, home: &str) -> Done {
    let builder = Partitioner::builder(client, &format!("{home}/shards"), ["s1", "s2"]);
    let partitioner = builder.settle(Duration::from_millis(1)).join()?;
    let share = partitioner.acquire().await?;
    assert_eq!(share.items().len(), 2);
    share.release().await?;
    partitioner.leave().await?;
    Ok(())
}

async fn election(client: &Client, home: &str) -> Done {
    let election = Election::builder(client, &format!("{home}/election")).id("me").build()?;
    let leadership = election.campaign().await?;
    assert_eq!(election.leader().await?.map(|leader| leader.id).as_deref(), Some("me"));
    leadership.resign().await?;
    let delayed = Election::builder(client, &format!("{home}/delayed"));
    let delayed = delayed.takeover_delay(Duration::from_millis(1)).build()?;
    delayed.campaign().await?.resign().await?;
    Ok(())
}

async fn barrier(client: &Client, home: &str) -> Done {
    let barrier = Barrier::new(client, &format!("{home}/barrier"))?;
    assert!(barrier.set().await?);
    barrier.remove().await?;
    Ok(barrier.wait().await?)
}

async fn double_barrier(client: &Client, home: &str) -> Done {
    let round = DoubleBarrier::new(client, &format!("{home}/round"), 2)?;
    let (one, other) = tokio::try_join!(round.enter(), round.enter())?;
    tokio::try_join!(one.leave(), other.leave())?;
    Ok(())
}

async fn delete_all(client: &Client, home: &str) -> Done {
    for path in ["tree/a/b", "tree/c", "tree/a/d/e"] {
        client.create(&format!("{home}/{path}"), "", CreateMode::Persistent).await?;
    }
    client.delete_all(&format!("{home}/tree")).await?;
    assert_eq!(client.exists(&format!("{home}/tree")).await?, None);
    Ok(())
}
