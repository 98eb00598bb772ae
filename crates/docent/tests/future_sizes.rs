//! Sizes of the futures that users await. A future is moved when it is spawned, and is a part of the future
//! that awaits it.

use docent::config::{SharedCount, SharedValue, TypedNode};
use docent::locks::{MultiLock, SharedLimit};
use docent::server::Server;
use docent::testkit::{FaultProxy, Port, RealServer, eventually, in_line};
use docent::{
    Barrier, Client, Config, ConfigTree, Counter, CreateMode, DoubleBarrier, Election, Error, Instance,
    LayeredConfig, Membership, Mutex, Queue, Registry, RwLock, Semaphore,
};
use std::time::Duration;

/// Maximum sizes in bytes of the future of a recipe, and of a request of a client.
const RECIPE: usize = 1_024;
const REQUEST: usize = 1_024;

const SECOND: Duration = Duration::from_secs(1);

/// Sizes of futures, by the expressions that create them. The futures are not awaited.
macro_rules! sizes {
    ($($future:expr),+ $(,)?) => {
        [$((stringify!($future), size_of_val(&$future))),+]
    };
}

/// Prints all sizes, and fails if one is larger than `most`.
fn check(sizes: &[(&str, usize)], most: usize) {
    for (future, size) in sizes {
        println!("{size:6} {future}");
    }
    let large: Vec<_> = sizes.iter().filter(|(_, size)| *size > most).collect();
    assert!(large.is_empty(), "larger than {most} bytes: {large:?}");
}

/// Creates a client that never connects.
fn client() -> Result<Client, Error> {
    Client::builder("127.0.0.1:1").build()
}

#[tokio::test]
async fn futures_of_queues_are_small() -> Result<(), Error> {
    let queue = Queue::<u64>::new(&client()?, "/q")?;
    let sizes = sizes![
        queue.put(&1),
        queue.take(),
        queue.try_take(),
        queue.take_timeout(SECOND),
        queue.take_batch(9),
        queue.peek(),
        queue.len(),
    ];
    check(&sizes, RECIPE);
    Ok(())
}

#[tokio::test]
async fn futures_of_locks_and_elections_are_small() -> Result<(), Error> {
    let client = client()?;
    let (mutex, lock) = (Mutex::new(&client, "/m")?, RwLock::new(&client, "/l")?);
    let limit = SharedLimit::new(&client, "/limit", 3)?;
    let semaphore = Semaphore::new(&client, "/s", 3)?;
    let multi = MultiLock::new([lock.reading(), mutex.clone().into()])?;
    let (barrier, double) = (Barrier::new(&client, "/b")?, DoubleBarrier::new(&client, "/d", 2)?);
    let election = Election::new(&client, "/e")?;
    let sizes = sizes![
        mutex.acquire(),
        mutex.try_acquire(),
        mutex.acquire_timeout(SECOND),
        mutex.participants(),
        lock.read(),
        lock.write(),
        lock.try_write(),
        semaphore.acquire(),
        semaphore.try_acquire(),
        semaphore.acquire_many_timeout(2, SECOND),
        semaphore.participants(),
        limit.get(),
        limit.set(4),
        multi.acquire(),
        multi.try_acquire(),
        multi.acquire_timeout(SECOND),
        barrier.set(),
        barrier.wait(),
        barrier.remove(),
        double.enter(),
        double.enter_timeout(SECOND),
        election.campaign(),
        election.leader(),
        election.run(|leadership| async move { leadership.resign().await.map(drop) }),
    ];
    check(&sizes, RECIPE);
    Ok(())
}

/// Guards exist only after they were acquired from a server.
#[tokio::test]
async fn futures_of_guards_are_small() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::start().await?;
    let client = Client::connect(server.connect_string()).await?;
    let queue = Queue::<u64>::new(&client, "/q")?;
    queue.put_all(&[1, 2]).await?;
    let (other, delivery) = (Queue::<u64>::new(&client, "/done")?, queue.take().await?);
    let mutex = Mutex::new(&client, "/m")?.acquire().await?;
    let read = RwLock::new(&client, "/read")?.read().await?;
    let write = RwLock::new(&client, "/write")?.write().await?;
    let permit = Semaphore::new(&client, "/s", 3)?.acquire().await?;
    let locks = ["/a", "/b"].map(|path| Mutex::new(&client, path));
    let [first, second] = locks;
    let multi = MultiLock::new([&first?, &second?])?.acquire().await?;
    let leadership = Election::new(&client, "/e")?.campaign().await?;
    let one = || mutex.transaction().delete("/a", None);
    let held = sizes![
        mutex.verify(),
        mutex.lost(),
        mutex.revoked(),
        mutex.run(std::future::pending::<()>()),
        read.verify(),
        read.lost(),
        write.verify(),
        write.lost(),
        permit.verify(),
        permit.lost(),
        multi.verify(),
        multi.lost(),
        leadership.verify(),
        leadership.lost(),
        leadership.revoked(),
        leadership.proclaim(""),
        delivery.verify(),
        delivery.lost(),
        delivery.revoked(),
        delivery.run(std::future::pending::<()>()),
        one().commit(),
        one().commit_exactly(),
    ];
    check(&held, RECIPE);
    let ended = sizes![
        mutex.release(),
        read.release(),
        write.downgrade(),
        permit.release(),
        multi.release(),
        leadership.resign(),
        delivery.ack_and_put(&other, &1),
        queue.take().await?.ack(),
    ];
    check(&ended, RECIPE);
    client.close().await;
    Ok(())
}

#[tokio::test]
async fn futures_of_discovery_and_configuration_are_small() -> Result<(), Error> {
    let client = client()?;
    let registry = Registry::new(&client, "/r")?;
    let group = Membership::new(&client, "/g")?;
    let service = registry.service_builder::<()>("web").start()?;
    let (config, tree) = (Config::<u32>::new(&client, "/c")?, ConfigTree::<u32>::new(&client, "/t")?);
    let layered = LayeredConfig::<u32>::builder(&client, "app").build()?;
    let counter = Counter::<i64>::new(&client, "/n")?;
    let (count, value) = (SharedCount::new(&client, "/i", 1)?, SharedValue::new(&client, "/v", "")?);
    let node = TypedNode::<u32>::new(&client, "/typed")?;
    let instance = || Instance::<()>::new("web", "10.0.0.7", 80);
    let sizes = sizes![
        registry.register(instance()),
        registry.consume("web", instance()),
        registry.service("web"),
        registry.names(),
        service.ready(),
        group.join("one", ""),
        group.members(),
        config.publish(&1),
        config.publish_new(&1),
        config.update(|now| now),
        config.history(),
        config.delete(),
        config.get(),
        config.subscribe(),
        tree.subscribe(),
        layered.subscribe(),
        counter.get(),
        counter.increment(),
        counter.set(1),
        counter.compare_and_set(1, 2),
        count.get(),
        count.set(1),
        count.subscribe(),
        value.get(),
        value.set("1"),
        node.get(),
        node.create(&1),
        node.set(&1),
        node.update(|now| now),
        node.delete(),
    ];
    check(&sizes, RECIPE);
    Ok(())
}

#[tokio::test]
async fn futures_of_the_test_kit_are_small() -> Result<(), Box<dyn std::error::Error>> {
    let (client, port) = (client()?, Port::claim()?);
    let proxy = FaultProxy::start(port.address()).await?;
    let sizes = sizes![
        FaultProxy::start(port.address()),
        proxy.cut(),
        proxy.heal(),
        proxy.expire(1),
        port.start_server(),
        in_line(&client, "/m", 2, SECOND),
        eventually(SECOND, async || 1, |_| true),
        RealServer::start(),
        RealServer::shared(),
    ];
    check(&sizes, RECIPE);
    Ok(())
}

#[tokio::test]
async fn futures_of_requests_are_small() -> Result<(), Error> {
    let client = client()?;
    let one = || client.transaction().delete("/a", None);
    let sizes = sizes![
        Client::connect("127.0.0.1:1"),
        client.create("/a", "", CreateMode::Persistent),
        client.get("/a"),
        client.set("/a", "", None),
        client.delete("/a", None),
        client.ensure_absent("/a"),
        client.exists("/a"),
        client.children("/a"),
        client.acl("/a"),
        client.sync("/a"),
        client.check_clock(SECOND),
        client.who_am_i(),
        client.close(),
        client.shutdown(SECOND),
        one().commit(),
        one().commit_exactly(),
    ];
    check(&sizes, REQUEST);
    Ok(())
}
