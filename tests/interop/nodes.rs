//! Nodes of each recipe, ours and Curator's, which must be the same byte for byte.

use crate::curator::{IDENTITY, both};
use docent::config::{Raw, SharedCount};
use docent::election::ElectionLayout;
use docent::queue::QueueLayout;
use docent::{
    Barrier, Client, Counter, DoubleBarrier, Election, Membership, Mutex, Queue, RwLock, Semaphore,
    SharedValue, SimpleQueue,
};
use docent_battery::Backend;
use docent_tests::soon;

const OURS: &str = "/ours";
const THEIRS: &str = "/theirs";

/// Of a queue's folders and claims Curator looks at the names alone. Its own say where they come from; our
/// claims also have an id, by which a lost reply is resolved. Of a semaphore's node it looks at nothing: ours
/// keeps the limit there.
const UNREAD: [&str; 4] = ["/queue", "/claims", "/claims/queue-0000000000", "/semaphore"];

/// End of the name of a proof. Our consumer makes this node below an item that it hands out, and Curator's
/// has no such node.
const PROOF: &str = "*-claim";

/// The nodes below a path by their properties that are the same in each run: names without random ids, data,
/// and whether a session owns them.
async fn tree(client: &Client, path: &str) -> Vec<(String, String, bool)> {
    let mut nodes = Vec::new();
    let mut paths = vec![path.to_owned()];
    while let Some(parent) = paths.pop() {
        let node = soon(client.get(&parent)).await.unwrap();
        let name = without_ids(&parent[path.len()..]);
        let data =
            if UNREAD.contains(&name.as_str()) { "".into() } else { node.data.escape_ascii().to_string() };
        nodes.push((name, data, node.stat.owner.is_some()));
        let mut names = soon(client.children(&parent)).await.unwrap().names;
        names.retain(|name| !without_ids(name).ends_with(PROOF));
        paths.extend(names.into_iter().map(|name| format!("{parent}/{name}")));
    }
    nodes.sort();
    nodes
}

/// With `*` for every UUID.
fn without_ids(path: &str) -> String {
    const UUID: usize = 36;
    let is_uuid = |text: &str| {
        let is_digit =
            |(at, byte)| matches!((at, byte), (8 | 13 | 18 | 23, b'-')) || byte.is_ascii_hexdigit();
        text.bytes().enumerate().all(is_digit)
    };
    let id = (0..path.len()).find(|&at| path.get(at..at + UUID).is_some_and(is_uuid));
    match id {
        Some(at) => format!("{}*{}", &path[..at], without_ids(&path[at + UUID..])),
        None => path.to_owned(),
    }
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn what_ours_and_curators_write_is_the_same_byte_for_byte() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let ours = |name: &str| format!("{OURS}/{name}");
    let theirs = async |what: &str, told: &[&str]| {
        let theirs = curator.make(what).await;
        for verb in told {
            theirs.done(verb).await;
        }
    };

    let _mutex = soon(Mutex::new(&client, &ours("mutex")).unwrap().acquire()).await.unwrap();
    theirs("mutex /theirs/mutex", &["acquire"]).await;
    let _read = soon(RwLock::new(&client, &ours("read")).unwrap().read()).await.unwrap();
    theirs("rw-lock /theirs/read", &["read"]).await;
    let _write = soon(RwLock::new(&client, &ours("written")).unwrap().write()).await.unwrap();
    theirs("rw-lock /theirs/written", &["write"]).await;
    let _permits =
        soon(Semaphore::new(&client, &ours("semaphore"), 3).unwrap().acquire_many(2)).await.unwrap();
    theirs("semaphore /theirs/semaphore 3", &["acquire 2"]).await;

    let mut terms = Vec::new();
    for (layout, kind) in
        [(ElectionLayout::LeaderLatch, "latch"), (ElectionLayout::LeaderSelector, "selector")]
    {
        let nameless = Election::builder(&client, &ours(kind)).layout(layout);
        let named = Election::builder(&client, &ours(&format!("{kind}-id"))).layout(layout).id("host-7");
        terms.push(soon(nameless.build().unwrap().campaign()).await.unwrap());
        terms.push(soon(named.build().unwrap().campaign()).await.unwrap());
        theirs(&format!("{kind} /theirs/{kind} "), &["stand", "lead"]).await;
        theirs(&format!("{kind} /theirs/{kind}-id host-7"), &["stand", "lead"]).await;
    }

    soon(Barrier::new(&client, &ours("barrier")).unwrap().set()).await.unwrap();
    theirs("barrier /theirs/barrier", &["set"]).await;
    let double = DoubleBarrier::new(&client, &ours("double-barrier"), 1).unwrap();
    let _entered = soon(double.enter()).await.unwrap();
    theirs("double-barrier /theirs/double-barrier 1", &["enter"]).await;

    let layout = QueueLayout::Curator { lock_path: ours("claims") };
    let queue = Queue::<String>::builder_with(&client, &ours("queue"), Raw).layout(layout).build().unwrap();
    soon(queue.put_all(&["item".to_owned(), "".to_owned()])).await.unwrap();
    let _delivery = soon(queue.take()).await.unwrap();
    theirs("producer /theirs/queue", &["put item", "put "]).await;
    theirs("consumer /theirs/queue /theirs/claims", &["take"]).await;
    soon(SimpleQueue::new(&client, &ours("simple-queue")).unwrap().put("item")).await.unwrap();
    theirs("simple-queue /theirs/simple-queue", &["offer item"]).await;

    let group = Membership::new(&client, &ours("group")).unwrap();
    let _member = soon(group.join("host-7", "hello")).await.unwrap();
    theirs("member /theirs/group host-7 hello", &["until-members host-7=hello"]).await;
    soon(SharedValue::new(&client, &ours("value"), "seed").unwrap().set("value")).await.unwrap();
    theirs("value /theirs/value seed", &["set value"]).await;
    soon(SharedCount::new(&client, &ours("count"), 1).unwrap().set(258)).await.unwrap();
    theirs("count /theirs/count 1", &["set 258"]).await;
    soon(Counter::<i64>::new(&client, &ours("long")).unwrap().add(258)).await.unwrap();
    theirs("long /theirs/long", &["add 258"]).await;
    soon(Counter::<i32>::new(&client, &ours("int")).unwrap().add(-258)).await.unwrap();
    theirs("int /theirs/int", &["add -258"]).await;

    let nodes = tree(&client, OURS).await;
    assert_eq!(nodes, tree(&client, THEIRS).await);
    assert!(
        nodes.contains(&("/mutex/_c_*-lock-0000000000".to_owned(), IDENTITY.to_owned(), true)),
        "{nodes:#?}"
    );
}
