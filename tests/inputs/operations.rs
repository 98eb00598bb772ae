//! Errors name the method that the caller called, and not a step inside it.

use docent::config::{Config, ConfigTree, Counter, SharedCount, SharedValue, TypedNode};
use docent::discovery::{Instance, Membership, Registry};
use docent::election::Election;
use docent::locks::{Barrier, DoubleBarrier, Mutex, RwLock, Semaphore, SharedLimit, TimedLease};
use docent::node::Acl;
use docent::queue::{PutOptions, Queue, SimpleQueue};
use docent::{Client, CreateMode};
use docent_battery::Backend;
use docent_tests::{builder, connect, soon};
use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

const T: Duration = Duration::from_secs(1);

/// Awaits a call that must fail, and adds its method and the text of its error to `texts`.
async fn failed<T, E: Display>(
    texts: &mut Vec<(&'static str, String)>,
    method: &'static str,
    call: impl Future<Output = Result<T, E>>,
) {
    let text = match tokio::time::timeout(Duration::from_secs(100), call).await {
        Ok(Ok(_)) => "succeeded".to_owned(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "waits".to_owned(),
    };
    texts.push((method, text));
}

macro_rules! all {
    ($texts:ident: $($method:literal $call:expr;)*) => { $(Box::pin(failed(&mut $texts, $method, $call)).await;)* };
}

async fn errors(client: &Client, base: &str) -> Vec<(&'static str, String)> {
    let mut texts = Vec::new();
    let (mutex, lock) = (Mutex::new(client, base).unwrap(), RwLock::new(client, base).unwrap());
    let semaphore = Semaphore::new(client, base, 2).unwrap();
    let limit = SharedLimit::new(client, base, 2).unwrap();
    let barrier = Barrier::new(client, base).unwrap();
    let lease = TimedLease::new(client, base, T).unwrap();
    all! { texts:
        "mutex.acquire" mutex.acquire();
        "mutex.try_acquire" mutex.try_acquire();
        "mutex.acquire_timeout" mutex.acquire_timeout(T);
        "mutex.participants" mutex.participants();
        "mutex.reset" mutex.reset();
        "rw.read" lock.read();
        "rw.write" lock.write();
        "rw.participants" lock.participants();
        "semaphore.acquire" semaphore.acquire();
        "semaphore.try_acquire" semaphore.try_acquire();
        "semaphore.participants" semaphore.participants();
        "limit.get" limit.get();
        "limit.set" limit.set(3);
        "barrier.set" barrier.set();
        "barrier.is_set" barrier.is_set();
        "barrier.remove" barrier.remove();
        "barrier.wait" barrier.wait();
        "double.enter" DoubleBarrier::new(client, base, 2).unwrap().enter();
        "lease.try_obtain" lease.try_obtain();
        "lease.give_back" lease.give_back();
    }
    let election = Election::builder(client, base).id("a").build().unwrap();
    all! { texts:
        "election.campaign" election.campaign();
        "election.leader" election.leader();
        "election.candidates" election.candidates();
        "election.wait_for_leader" election.wait_for_leader();
        "election.reset" election.reset();
        "election.run" election.run(|_| async { Ok::<_, docent::Error>(()) });
    }
    let registry = Registry::new(client, base).unwrap();
    let group = Membership::new(client, base).unwrap();
    let instance = || Instance::new("orders", "10.0.0.7", 80).id("1");
    let fixed = || instance().service_type(docent::discovery::ServiceType::Static);
    all! { texts:
        "registry.register" registry.register(instance());
        "registry.register static" registry.register(fixed());
        "registry.consume" registry.consume("orders", instance());
        "registry.service" registry.service("orders");
        "registry.consumers" registry.consumers("orders");
        "registry.names" registry.names();
        "group.join" group.join("host-7", "10.0.0.7");
        "group.join_by_identity" group.join_by_identity("host-7");
        "group.members" group.members();
    }
    let config = Config::<u32>::new(client, base).unwrap();
    let tree = ConfigTree::<u32>::new(client, base).unwrap();
    let (count, value) =
        (SharedCount::new(client, base, 1).unwrap(), SharedValue::new(client, base, "1").unwrap());
    let node = TypedNode::<u32>::new(client, base).unwrap();
    let counter = Counter::<i64>::new(client, base).unwrap();
    all! { texts:
        "config.publish" config.publish(&7);
        "config.publish_new" config.publish_new(&7);
        "config.update" config.update(|now| now);
        "config.history" config.history();
        "config.delete" config.delete();
        "config.get" config.get();
        "config.subscribe" config.subscribe();
        "config.subscribe_when_published" config.subscribe_when_published();
        "tree.subscribe" tree.subscribe();
        "count.get" count.get();
        "count.set" count.set(7);
        "count.subscribe" count.subscribe();
        "value.get" value.get();
        "value.set" value.set("7");
        "value.subscribe" value.subscribe();
        "node.get" node.get();
        "node.create" node.create(&1);
        "node.set" node.set(&1);
        "node.update" node.update(|_| Some(1));
        "node.delete" node.delete();
        "counter.get" counter.get();
        "counter.increment" counter.increment();
        "counter.decrement" counter.decrement();
        "counter.add" counter.add(2);
        "counter.subtract" counter.subtract(2);
        "counter.set" counter.set(7);
        "counter.compare_and_set" counter.compare_and_set(7, 8);
        "counter.initialize" counter.initialize(7);
    }
    let queue = Queue::<u32>::new(client, base).unwrap();
    let ordered = Queue::<u32>::builder(client, base).ordered().build().unwrap();
    let options = PutOptions::new();
    let letters = queue.dead_letters();
    let simple = SimpleQueue::new(client, base).unwrap();
    all! { texts:
        "queue.put" queue.put(&1);
        "queue.put_with" queue.put_with(&1, options);
        "queue.put_all" queue.put_all(&[1, 2]);
        "queue.put_ephemeral" ordered.put_ephemeral(&1);
        "queue.take" queue.take();
        "queue.try_take" queue.try_take();
        "queue.take_timeout" queue.take_timeout(T);
        "queue.take_batch" queue.take_batch(2);
        "queue.peek" queue.peek();
        "queue.len" queue.len();
        "queue.is_empty" queue.is_empty();
        "queue.list" queue.list();
        "queue.purge" queue.purge();
        "queue.reset" queue.reset();
        "queue.reschedule" queue.reschedule("item-0000000000", options);
        "letters.list" letters.list();
        "letters.len" letters.len();
        "letters.purge" letters.purge();
        "simple.put" simple.put("");
        "simple.take" simple.take();
        "simple.take_timeout" simple.take_timeout(T);
        "simple.try_take" simple.try_take();
        "simple.peek" simple.peek();
        "simple.len" simple.len();
    }
    texts
}

/// Returns the operation that an error of `method` names. Methods that differ only in how long they wait, or
/// in what they pass, name the same operation.
fn operation(method: &str) -> &str {
    let name = method.split(' ').next().and_then(|name| name.split('.').nth(1)).unwrap();
    match name {
        "try_acquire" | "acquire_timeout" | "read" | "write" => "acquire",
        "run" => "campaign",
        "try_take" | "take_timeout" | "take_batch" => "take",
        "put_with" | "put_all" | "put_ephemeral" => "put",
        "publish_new" => "publish",
        "subscribe_when_published" => "subscribe",
        "join_by_identity" => "join",
        name => name,
    }
}

/// Checks the errors of all methods, of which at least `least` must fail.
async fn all_name_their_method(client: &Client, base: &str, least: usize) {
    let mut failed = 0;
    for (method, text) in errors(client, base).await {
        if ["succeeded", "waits"].contains(&&*text) || text.ends_with("no value is published at the path") {
            continue;
        }
        let begin = format!("{} \"{base}", operation(method));
        assert!(text.starts_with(&begin), "the error of {method} must begin with {begin:?}: {text}");
        failed += 1;
    }
    assert!(failed >= least, "only {failed} calls failed");
}

#[tokio::test(start_paused = true)]
async fn an_error_names_the_method_that_was_called() {
    let server = Backend::Memory.start().await;
    let admin = builder(&server, server.connect_string()).auth_digest("admin", "word").allow_plaintext_auth();
    let admin = soon(admin.acl([Acl::creator_all()]).connect()).await.unwrap();
    for path in ["/denied", "/denied/x", "/denied/x/items", "/denied/x/leases", "/denied/x/orders"] {
        soon(admin.create(path, "1", CreateMode::Persistent)).await.unwrap();
    }
    let client = connect(&server).await;
    // The nodes may be neither read nor written.
    all_name_their_method(&client, "/denied/x", 70).await;
    // The nodes do not exist and cannot be created.
    for (method, text) in errors(&client, "/denied/y").await {
        let begin = format!("{} \"/denied/y", operation(method));
        let fine = !text.contains("permission denied") || text.starts_with(&begin);
        assert!(fine, "the error of {method} must begin with {begin:?}: {text}");
    }
    // No server answers.
    let unconnected = builder(&server, "127.0.0.1:1").operation_timeout(T).build().unwrap();
    all_name_their_method(&unconnected, "/x", 70).await;
}
