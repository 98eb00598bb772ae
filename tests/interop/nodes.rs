//! Nodes of each recipe, which Docent and Curator must write identically, byte for byte.

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

const DOCENT: &str = "/ours";
const CURATOR: &str = "/theirs";

/// Nodes whose data Curator does not read. Curator uses only the names of a queue's folders and claims. Its
/// own claims contain their origin, and Docent's also an id that resolves a lost reply. Docent stores the
/// limit of a semaphore in a node that Curator does not read.
const UNREAD: [&str; 4] = ["/queue", "/claims", "/claims/queue-0000000000", "/semaphore"];

/// End of the name of a proof. Docent's consumer creates this node below a delivered item, and Curator has no
/// such node.
const PROOF: &str = "*-claim";

/// Returns the nodes below a path with the properties that are the same in each run: names without random
/// ids, data, and whether a session owns the node.
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

/// Returns the path with `*` in place of every UUID.
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
async fn docent_and_curator_write_the_same_bytes() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let own = |name: &str| format!("{DOCENT}/{name}");
    let peer = async |recipe: &str, verbs: &[&str]| {
        let peer = curator.make(recipe).await;
        for verb in verbs {
            peer.done(verb).await;
        }
    };

    let _mutex = soon(Mutex::new(&client, &own("mutex")).unwrap().acquire()).await.unwrap();
    peer("mutex /theirs/mutex", &["acquire"]).await;
    let _read = soon(RwLock::new(&client, &own("read")).unwrap().read()).await.unwrap();
    peer("rw-lock /theirs/read", &["read"]).await;
    let _write = soon(RwLock::new(&client, &own("written")).unwrap().write()).await.unwrap();
    peer("rw-lock /theirs/written", &["write"]).await;
    let _permits =
        soon(Semaphore::new(&client, &own("semaphore"), 3).unwrap().acquire_many(2)).await.unwrap();
    peer("semaphore /theirs/semaphore 3", &["acquire 2"]).await;

    let mut terms = Vec::new();
    for (layout, kind) in
        [(ElectionLayout::LeaderLatch, "latch"), (ElectionLayout::LeaderSelector, "selector")]
    {
        let nameless = Election::builder(&client, &own(kind)).layout(layout);
        let named = Election::builder(&client, &own(&format!("{kind}-id"))).layout(layout).id("host-7");
        terms.push(soon(nameless.build().unwrap().campaign()).await.unwrap());
        terms.push(soon(named.build().unwrap().campaign()).await.unwrap());
        peer(&format!("{kind} /theirs/{kind} "), &["stand", "lead"]).await;
        peer(&format!("{kind} /theirs/{kind}-id host-7"), &["stand", "lead"]).await;
    }

    soon(Barrier::new(&client, &own("barrier")).unwrap().set()).await.unwrap();
    peer("barrier /theirs/barrier", &["set"]).await;
    let double = DoubleBarrier::new(&client, &own("double-barrier"), 1).unwrap();
    let _entered = soon(double.enter()).await.unwrap();
    peer("double-barrier /theirs/double-barrier 1", &["enter"]).await;

    let layout = QueueLayout::Curator { lock_path: own("claims") };
    let queue = Queue::<String>::builder_with(&client, &own("queue"), Raw).layout(layout).build().unwrap();
    soon(queue.put_all(&["item".to_owned(), "".to_owned()])).await.unwrap();
    let _delivery = soon(queue.take()).await.unwrap();
    peer("producer /theirs/queue", &["put item", "put "]).await;
    peer("consumer /theirs/queue /theirs/claims", &["take"]).await;
    soon(SimpleQueue::new(&client, &own("simple-queue")).unwrap().put("item")).await.unwrap();
    peer("simple-queue /theirs/simple-queue", &["offer item"]).await;

    let group = Membership::new(&client, &own("group")).unwrap();
    let _member = soon(group.join("host-7", "hello")).await.unwrap();
    peer("member /theirs/group host-7 hello", &["until-members host-7=hello"]).await;
    soon(SharedValue::new(&client, &own("value"), "seed").unwrap().set("value")).await.unwrap();
    peer("value /theirs/value seed", &["set value"]).await;
    soon(SharedCount::new(&client, &own("count"), 1).unwrap().set(258)).await.unwrap();
    peer("count /theirs/count 1", &["set 258"]).await;
    soon(Counter::<i64>::new(&client, &own("long")).unwrap().add(258)).await.unwrap();
    peer("long /theirs/long", &["add 258"]).await;
    soon(Counter::<i32>::new(&client, &own("int")).unwrap().add(-258)).await.unwrap();
    peer("int /theirs/int", &["add -258"]).await;

    let nodes = tree(&client, DOCENT).await;
    assert_eq!(nodes, tree(&client, CURATOR).await);
    assert!(
        nodes.contains(&("/mutex/_c_*-lock-0000000000".to_owned(), IDENTITY.to_owned(), true)),
        "{nodes:#?}"
    );
}
