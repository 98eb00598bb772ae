//! Folders of configurations.

use crate::limits::{Limits, in_range, json, limits, watches};
use crate::{builder, connect};
use docent::cache::ChildrenCache;
use docent::config::{Raw, SubscribeError, TreeChange, TreeSubscription};
use docent::{Config, ConfigTree, CreateMode, ErrorKind};
use docent_battery::{Backend, both_backends};
use docent_tests::soon;
use futures_util::future::try_join_all;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::runtime::Builder;

const FOLDER: &str = "/config/flags";

fn tree(client: &docent::Client) -> ConfigTree<Limits> {
    Config::builder(client, FOLDER).validate(in_range).build_tree().unwrap()
}

/// Returns the next change, abbreviated.
async fn next(subscription: &mut TreeSubscription<Limits>) -> String {
    match soon(subscription.changed()).await {
        Some(Ok(TreeChange::Value(key, value))) => format!("{key}={}", value.per_second),
        Some(Ok(TreeChange::Deleted(key))) => format!("-{key}"),
        Some(Ok(TreeChange::Refused(key, _))) => format!("!{key}"),
        other => panic!("{other:?}"),
    }
}

fn shown(subscription: &TreeSubscription<Limits>) -> String {
    let current = subscription.current();
    let shown: Vec<_> = current.iter().map(|(key, value)| format!("{key}={}", value.per_second)).collect();
    shown.join(" ")
}

async fn until(subscription: &TreeSubscription<Limits>, wanted: &str) {
    soon(async {
        while shown(subscription) != wanted {
            docent_tests::pause().await;
        }
    })
    .await;
}

/// Value at which the follower blocks.
const GATE: u32 = 999;

async fn hold_up(backend: Backend) {
    const PASSERS_BY: u32 = 1_100;
    let server = backend.start().await;
    let (client, other) = (connect(&server).await, connect(&server).await);
    let operator = tree(&other);
    for key in ["gone", "stays"] {
        soon(operator.key(key).unwrap().publish(&limits(1))).await.unwrap();
    }
    let (held, open) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (is_held, is_open) = (Arc::clone(&held), Arc::clone(&open));
    let rule = move |limits: &Limits| -> Result<(), String> {
        if limits.per_second == GATE {
            is_held.store(true, Ordering::SeqCst);
            tokio::task::block_in_place(|| while !is_open.load(Ordering::SeqCst) {});
        }
        Ok(())
    };
    let slow = Config::builder(&client, FOLDER).validate(rule).build_tree().unwrap();
    let subscription = soon(slow.subscribe()).await.unwrap();
    assert_eq!(shown(&subscription), "gone=1 stays=1");
    soon(operator.key("gate").unwrap().publish(&limits(GATE))).await.unwrap();
    soon(async {
        while !held.load(Ordering::SeqCst) {
            docent_tests::pause().await;
        }
    })
    .await;
    // More changes than the cache keeps for the follower.
    let cache = ChildrenCache::new(&client, FOLDER).unwrap();
    let path = |number| format!("{FOLDER}/{number}");
    for known in [PASSERS_BY as usize + 3, 2] {
        let change = (0..PASSERS_BY).map(|number| {
            let (path, other) = (path(number), &other);
            async move {
                match known {
                    2 => other.delete(&path, None).await,
                    _ => other.create(&path, json(1), CreateMode::Persistent).await.map(drop),
                }
            }
        });
        soon(try_join_all(change)).await.unwrap();
        if known == 2 {
            soon(operator.key("gone").unwrap().delete()).await.unwrap();
        }
        soon(async {
            while cache.current().len() != known {
                docent_tests::pause().await;
            }
        })
        .await;
    }
    open.store(true, Ordering::SeqCst);
    until(&subscription, "gate=999 stays=1").await;
    soon(operator.key("stays").unwrap().publish(&limits(2))).await.unwrap();
    until(&subscription, "gate=999 stays=2").await;
}

both_backends! {
    async fn keys_are_added_changed_and_deleted(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (tree, operator) = (tree(&client), tree(&other));
        let mut subscription = soon(tree.subscribe()).await.unwrap();
        assert!(subscription.current().is_empty());
        soon(operator.key("a").unwrap().publish(&limits(1))).await.unwrap();
        assert_eq!(next(&mut subscription).await, "a=1");
        soon(operator.key("a").unwrap().publish(&limits(2))).await.unwrap();
        assert_eq!(next(&mut subscription).await, "a=2");
        soon(operator.key("b").unwrap().publish(&limits(3))).await.unwrap();
        assert_eq!(next(&mut subscription).await, "b=3");
        assert_eq!(shown(&subscription), "a=2 b=3");
        soon(operator.key("a").unwrap().delete()).await.unwrap();
        assert_eq!(next(&mut subscription).await, "-a");
        assert_eq!(subscription.current().len(), 1);
        assert!(subscription.current().get("a").is_none());
        // The history of a key is not listed as a key.
        let past = soon(tree.key("b").unwrap().history()).await.unwrap();
        assert!(past.is_empty());
        assert_eq!(shown(&subscription), "b=3");
    }

    async fn a_bad_value_affects_only_its_key(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let tree = tree(&client);
        for key in ["a", "b"] {
            soon(tree.key(key).unwrap().publish(&limits(1))).await.unwrap();
        }
        client.create(&format!("{FOLDER}/c"), "[", CreateMode::Persistent).await.unwrap();
        client.create(&format!("{FOLDER}/_history"), "", CreateMode::Persistent).await.unwrap();
        let mut subscription = soon(tree.subscribe()).await.unwrap();
        assert_eq!(shown(&subscription), "a=1 b=1");
        assert_eq!(next(&mut subscription).await, "!c");
        client.set(&format!("{FOLDER}/a"), json(0), None).await.unwrap();
        assert_eq!(next(&mut subscription).await, "!a");
        let current = subscription.current();
        assert_eq!(current.refused().map(|(key, _)| key.to_string()).collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(shown(&subscription), "a=1 b=1");
        client.set(&format!("{FOLDER}/c"), json(5), None).await.unwrap();
        assert_eq!(next(&mut subscription).await, "c=5");
        client.set(&format!("{FOLDER}/a"), json(6), None).await.unwrap();
        assert_eq!(next(&mut subscription).await, "a=6");
        assert_eq!(subscription.current().refused().len(), 0);
    }

    async fn changes_during_a_disconnect_and_between_sessions_are_reported(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let operator = tree(&other);
        for key in ["a", "b", "c"] {
            soon(operator.key(key).unwrap().publish(&limits(1))).await.unwrap();
        }
        let client_tree = tree(&client);
        let mut subscription = soon(client_tree.subscribe()).await.unwrap();
        let mut slow = soon(client_tree.subscribe()).await.unwrap();
        proxy.cut().await;
        soon(async { while !subscription.is_stale() { docent_tests::pause().await; } }).await;
        assert_eq!(shown(&subscription), "a=1 b=1 c=1");
        soon(operator.key("a").unwrap().delete()).await.unwrap();
        soon(operator.key("b").unwrap().publish(&limits(2))).await.unwrap();
        soon(operator.key("d").unwrap().publish(&limits(4))).await.unwrap();
        proxy.heal().await.unwrap();
        until(&subscription, "b=2 c=1 d=4").await;
        server.expire(client.session_id().unwrap()).await.unwrap();
        soon(operator.key("c").unwrap().delete()).await.unwrap();
        soon(operator.key("b").unwrap().publish(&limits(3))).await.unwrap();
        until(&subscription, "b=3 d=4").await;
        // A slow reader receives the difference. Depending on timing, an intermediate value may be included.
        let mut changes = Vec::new();
        while changes.len() < 4 {
            changes.push(next(&mut slow).await);
            changes.retain(|change| change != "b=2");
        }
        changes.sort();
        assert_eq!(changes, ["-a", "-c", "b=3", "d=4"]);
        soon(client.close()).await;
        while soon(subscription.changed()).await.is_some() {}
        let Err(SubscribeError::Core(error)) = soon(tree(&client).subscribe()).await else { panic!() };
        assert_eq!(error.kind(), ErrorKind::Closed);
    }

    async fn a_delayed_subscription_drops_keys_that_were_deleted_meanwhile(backend: Backend) {
        // The follower blocks one thread, and everything else runs on the other.
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let held_up = move || {
            runtime.block_on(hold_up(backend));
        };
        tokio::task::spawn_blocking(held_up).await.unwrap();
    }

    async fn followers_of_a_folder_share_its_watches_and_leave_none(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let tree = tree(&client);
        for key in 0..50 {
            soon(tree.key(&format!("key-{key}")).unwrap().publish(&limits(key + 1))).await.unwrap();
        }
        let subscriptions = [soon(tree.subscribe()).await.unwrap(), soon(tree.subscribe()).await.unwrap()];
        assert!(subscriptions.iter().all(|subscription| subscription.current().len() == 50));
        // One watch on each node's data and one on its children.
        let expected = if crate::PERSISTENT { 2 } else { 2 * (1 + 50) };
        soon(async { while watches(&server).is_some_and(|watches| watches != expected) { client.sync("/").await.unwrap(); } }).await;
        drop(subscriptions);
        soon(async { while watches(&server).is_some_and(|watches| watches > 0) { client.sync("/").await.unwrap(); } }).await;
    }

    async fn keys_at_all_depths_are_followed_and_folders_have_no_value(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (tree, operator) = (tree(&client), tree(&other));
        let mut subscription = soon(tree.subscribe()).await.unwrap();
        let deep = operator.key("eu/shop/db").unwrap();
        assert_eq!(deep.path(), format!("{FOLDER}/eu/shop/db"));
        soon(deep.publish(&limits(1))).await.unwrap();
        // The folders are neither shown nor rejected.
        assert_eq!(next(&mut subscription).await, "eu/shop/db=1");
        assert_eq!(subscription.current().refused().len(), 0);
        // A folder that gets a value is a key beside the keys below it. Names that start alike are no
        // parents.
        soon(operator.key("eu").unwrap().publish(&limits(2))).await.unwrap();
        assert_eq!(next(&mut subscription).await, "eu=2");
        soon(operator.key("eu-west").unwrap().publish(&limits(3))).await.unwrap();
        assert_eq!(next(&mut subscription).await, "eu-west=3");
        // Histories are not keys at any depth.
        soon(deep.publish(&limits(4))).await.unwrap();
        assert_eq!(next(&mut subscription).await, "eu/shop/db=4");
        assert_eq!(soon(deep.history()).await.unwrap().len(), 1);
        assert_eq!(shown(&soon(tree.subscribe()).await.unwrap()), "eu=2 eu-west=3 eu/shop/db=4");
        // An invalid value below a key affects neither the key nor its other children.
        client.create(&format!("{FOLDER}/eu/bad"), "[", CreateMode::Persistent).await.unwrap();
        assert_eq!(next(&mut subscription).await, "!eu/bad");
        // A value that is emptied is rejected if the node has no children, and is a folder if it has.
        client.set(&format!("{FOLDER}/eu-west"), "", None).await.unwrap();
        assert_eq!(next(&mut subscription).await, "!eu-west");
        client.set(&format!("{FOLDER}/eu"), "", None).await.unwrap();
        assert_eq!(next(&mut subscription).await, "-eu");
        assert_eq!(shown(&subscription), "eu-west=3 eu/shop/db=4");
    }

    async fn an_empty_text_is_a_value_only_without_keys_below(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        for path in ["/config", "/config/texts", "/config/texts/a", "/config/texts/b", "/config/texts/b/c"] {
            client.create(path, "", CreateMode::Persistent).await.unwrap();
        }
        let tree = Config::<Vec<u8>>::builder_with(&client, "/config/texts", Raw).build_tree().unwrap();
        let subscription = soon(tree.subscribe()).await.unwrap();
        let until_keys = async |wanted: &[&str]| {
            soon(async {
                while subscription.current().iter().map(|(key, _)| key.to_string()).collect::<Vec<_>>() != wanted {
                    docent_tests::pause().await;
                }
            })
            .await;
        };
        until_keys(&["a", "b/c"]).await;
        client.create("/config/texts/a/d", "text", CreateMode::Persistent).await.unwrap();
        until_keys(&["a/d", "b/c"]).await;
        client.delete("/config/texts/b/c", None).await.unwrap();
        until_keys(&["a/d", "b"]).await;
        client.delete("/config/texts/a/d", None).await.unwrap();
        until_keys(&["a", "b"]).await;
    }

    async fn a_subtree_is_deleted_and_recreated_also_while_disconnected(backend: Backend) {
        const KEYS: u32 = 1_000;
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let operator = tree(&other);
        let subscription = soon(tree(&client).subscribe()).await.unwrap();
        // The folder does not exist yet.
        assert!(subscription.current().is_empty() && !subscription.is_stale());
        soon(operator.key("stays/here").unwrap().publish(&limits(1))).await.unwrap();
        let count = |wanted: usize| {
            let subscription = &subscription;
            soon(async move {
                while subscription.current().len() != wanted {
                    docent_tests::pause().await;
                }
            })
        };
        let paths: Vec<_> = (0..KEYS).map(|number| format!("{FOLDER}/many/{}/{number}", number % 10)).collect();
        let folders: Vec<_> = (0..10).map(|number| format!("{FOLDER}/many/{number}")).collect();
        let fill = async |value: u32| {
            other.create(&format!("{FOLDER}/many"), "", CreateMode::Persistent).await.unwrap();
            for folder in &folders {
                other.create(folder, "", CreateMode::Persistent).await.unwrap();
            }
            let created = paths.iter().map(|path| other.create(path, json(value), CreateMode::Persistent));
            soon(try_join_all(created)).await.unwrap();
        };
        let empty = async || {
            soon(try_join_all(paths.iter().map(|path| other.delete(path, None)))).await.unwrap();
            soon(try_join_all(folders.iter().map(|path| other.delete(path, None)))).await.unwrap();
            other.delete(&format!("{FOLDER}/many"), None).await.unwrap();
        };
        fill(7).await;
        count(KEYS as usize + 1).await;
        empty().await;
        until(&subscription, "stays/here=1").await;
        fill(8).await;
        count(KEYS as usize + 1).await;
        proxy.cut().await;
        soon(async { while !subscription.is_stale() { docent_tests::pause().await; } }).await;
        assert_eq!(subscription.current().len(), KEYS as usize + 1, "known values stay");
        empty().await;
        soon(operator.key("other/deep/key").unwrap().publish(&limits(2))).await.unwrap();
        proxy.heal().await.unwrap();
        until(&subscription, "other/deep/key=2 stays/here=1").await;
        server.expire(client.session_id().unwrap()).await.unwrap();
        fill(9).await;
        soon(operator.key("other/deep/key").unwrap().delete()).await.unwrap();
        count(KEYS as usize + 1).await;
        soon(async { while subscription.current().get("many/3/3").is_none_or(|value| value.per_second != 9) { docent_tests::pause().await; } }).await;
        soon(async { while subscription.is_stale() { docent_tests::pause().await; } }).await;
        assert_eq!(subscription.current().refused().len(), 0);
        drop(subscription);
        soon(async { while watches(&server).is_some_and(|watches| watches > 0) { client.sync("/").await.unwrap(); } }).await;
    }
}
