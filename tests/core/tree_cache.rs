//! Caches of whole trees.

use crate::children_cache::all_but_read;
use crate::{PERSISTENT, builder, connect};
use docent::cache::{TreeCache, TreeEvent, TreeEvents};
use docent::node::Acl;
use docent::{Client, CreateMode, Error, ErrorKind};
use docent_battery::{Backend, Rule, both_backends};
use docent_proto::OpCode;
use docent_tests::{soon, until};
use futures_util::StreamExt;
use std::collections::BTreeMap;

/// A tree as a map of paths to data.
type Tree = BTreeMap<String, String>;

/// A subscriber, and the tree that its events describe.
struct Observer {
    events: TreeEvents,
    tree: Tree,
    log: Vec<String>,
}

impl Observer {
    fn by(cache: &TreeCache) -> Self {
        Self { events: cache.changes(), tree: Tree::new(), log: Vec::new() }
    }

    async fn next(&mut self) -> Result<(), Error> {
        let event = soon(self.events.next()).await.expect("the client is open")?;
        self.log.push(match event {
            TreeEvent::Init => {
                self.tree.clear();
                "init".to_owned()
            }
            TreeEvent::Added(path, node) | TreeEvent::Updated(path, node) => {
                self.tree.insert(path.to_string(), String::from_utf8(node.data.to_vec()).unwrap());
                format!("apply {path}")
            }
            TreeEvent::Delete(path) => {
                let below = format!("{path}/");
                assert!(
                    self.tree.keys().all(|known| !known.starts_with(&below)),
                    "{path}: its children must be deleted first"
                );
                self.tree.remove(&*path);
                format!("delete {path}")
            }
            TreeEvent::Unreadable(path, error) => {
                assert_eq!(error.path(), Some(&*path));
                format!("unreadable {path}")
            }
            TreeEvent::Ready => "ready".to_owned(),
            TreeEvent::Gap => "gap".to_owned(),
            other => panic!("{other:?}"),
        });
        Ok(())
    }

    async fn until_next(&mut self, entry: &str) {
        let from = self.log.len();
        while !self.log[from..].iter().any(|logged| logged == entry) {
            self.next().await.unwrap();
        }
    }

    async fn until_tree(&mut self, tree: &Tree) {
        while self.tree != *tree {
            self.next().await.unwrap();
        }
    }
}

fn shown(cache: &TreeCache) -> Tree {
    let text = |data: &[u8]| String::from_utf8(data.to_vec()).unwrap();
    cache.current().iter().map(|(path, node)| (path.to_string(), text(&node.data))).collect()
}

fn tree(nodes: &[(&str, &str)]) -> Tree {
    nodes.iter().map(|(path, data)| ((*path).to_owned(), (*data).to_owned())).collect()
}

/// Creates `nodes` in their order.
async fn make(client: &Client, nodes: &[(&str, &str)]) {
    for (path, data) in nodes {
        client.create(path, data.to_string(), CreateMode::Persistent).await.unwrap();
    }
}

const SMALL: [(&str, &str); 7] = [
    ("/t", "root"),
    ("/t/a", "1"),
    ("/t/a-b", "2"),
    ("/t/a/b", "3"),
    ("/t/a/b/c", "4"),
    ("/t/a/b/c/d", "5"),
    ("/t/e", "6"),
];

/// Changes the small tree in every way and returns the result.
async fn change(other: &Client) -> Tree {
    other.set("/t/a/b", "new", None).await.unwrap();
    other.delete_all("/t/a/b/c").await.unwrap();
    other
        .transaction()
        .delete("/t/e", None)
        .create("/t/e", "6", CreateMode::Persistent)
        .commit()
        .await
        .unwrap();
    make(other, &[("/t/f", "7"), ("/t/f/g", "8"), ("/t/e/h", "9")]).await;
    tree(&[
        ("/t", "root"),
        ("/t/a", "1"),
        ("/t/a-b", "2"),
        ("/t/a/b", "new"),
        ("/t/e", "6"),
        ("/t/e/h", "9"),
        ("/t/f", "7"),
        ("/t/f/g", "8"),
    ])
}

/// Reads the tree at `/t` from the server.
async fn real(client: &Client) -> Tree {
    let mut tree = Tree::new();
    let mut paths = vec!["/t".to_owned()];
    while let Some(path) = paths.pop() {
        let Ok(node) = client.get(&path).await else { continue };
        tree.insert(path.clone(), String::from_utf8(node.data.to_vec()).unwrap());
        paths.extend(
            client.children(&path).await.unwrap().names.into_iter().map(|name| format!("{path}/{name}")),
        );
    }
    tree
}

both_backends! {
    async fn a_tree_is_loaded_and_followed(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        make(&other, &SMALL).await;
        let cache = TreeCache::new(&client, "/t").unwrap();
        assert!(cache.is_stale() && cache.current().is_empty() && cache.path() == "/t");
        let mut observer = Observer::by(&cache);
        soon(cache.ready()).await.unwrap();
        assert!(!cache.is_stale() && cache.stale_for().is_none());
        assert_eq!(shown(&cache), tree(&SMALL));
        observer.until_next("ready").await;
        assert_eq!((observer.log[0].as_str(), observer.log.len()), ("init", SMALL.len() + 2));
        let current = cache.current();
        let paths = |nodes: Vec<&std::sync::Arc<str>>| nodes.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(paths(current.children("/t").map(|(path, _)| path).collect()), ["/t/a", "/t/a-b", "/t/e"]);
        assert_eq!(paths(current.descendants("/t/a").map(|(path, _)| path).collect()), ["/t/a/b", "/t/a/b/c", "/t/a/b/c/d"]);
        assert_eq!(current.children("/").count(), 1);
        let changed = change(&other).await;
        observer.until_tree(&changed).await;
        assert_eq!(shown(&cache), changed);
        assert_eq!(current.len(), SMALL.len(), "a snapshot does not change");
        assert!(cache.current().get("/t/e").unwrap().stat.czxid > current.get("/t/e").unwrap().stat.czxid);
        if let Some(embedded) = server.as_embedded() {
            let expected = if PERSISTENT { 2 } else { 2 * changed.len() };
            until(async || { client.sync("/").await.unwrap(); embedded.watch_count() == expected }).await;
        }
    }

    async fn a_tree_that_is_created_and_deleted_is_shown(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        for without_data in [false, true] {
            let builder = TreeCache::builder(&client, "/t");
            let cache = if without_data { builder.without_data() } else { builder }.build().unwrap();
            let mut observer = Observer::by(&cache);
            observer.until_next("ready").await;
            assert!(cache.current().is_empty() && !cache.is_stale());
            for _ in 0..3 {
                make(&other, &SMALL).await;
                until(async || cache.current().len() == SMALL.len()).await;
                other.delete_all("/t").await.unwrap();
                until(async || cache.current().is_empty()).await;
            }
        }
    }

    async fn changes_made_while_the_link_was_down_are_reported_and_nothing_else(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy) = (connect(&server).await, server.proxy().await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        for new_session in [false, true] {
            make(&other, &SMALL).await;
            let cache = TreeCache::new(&client, "/t").unwrap();
            let mut observer = Observer::by(&cache);
            observer.until_next("ready").await;
            let session = client.session_id().unwrap();
            proxy.cut().await;
            if !new_session {
                observer.until_next("gap").await;
                assert!(cache.is_stale() && shown(&cache) == tree(&SMALL));
            }
            let changed = change(&other).await;
            if new_session {
                server.expire(session).await.unwrap();
            }
            observer.log.clear();
            proxy.heal().await.unwrap();
            observer.until_next("ready").await;
            assert_eq!(observer.tree, changed);
            let mut changes: Vec<_> = observer.log.iter().filter(|entry| entry.contains('/')).cloned().collect();
            changes.sort();
            let expected = ["apply /t/a/b", "apply /t/e", "apply /t/e/h", "apply /t/f", "apply /t/f/g", "delete /t/a/b/c", "delete /t/a/b/c/d"];
            assert_eq!(changes, expected);
            assert!(!cache.is_stale());
            // All nodes are still watched.
            for (path, data) in [("/t/a", "last"), ("/t/e/h", "last"), ("/t/f/g", "last")] {
                other.set(path, data, None).await.unwrap();
            }
            make(&other, &[("/t/a-b/new", ""), ("/t/f/g/new", "")]).await;
            let last = real(&other).await;
            observer.until_tree(&last).await;
            other.delete_all("/t").await.unwrap();
        }
    }

    async fn lost_replies_cost_nothing_but_time(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy) = (connect(&server).await, server.proxy().await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        make(&other, &SMALL).await;
        for op in [OpCode::GetData, OpCode::GetChildren2] {
            for nth in [1, 3, 6] {
                let (before, after) = (Rule::on(op).nth(nth).reset_before(), Rule::on(op).nth(nth).reset_after());
                for lost in [before, after] {
                    let fired = proxy.add(lost);
                    let cache = TreeCache::new(&client, "/t").unwrap();
                    let mut observer = Observer::by(&cache);
                    observer.until_tree(&tree(&SMALL)).await;
                    assert!(fired.has_fired());
                    other.set("/t/a/b/c/d", "5", None).await.unwrap();
                    observer.until_next("apply /t/a/b/c/d").await;
                }
            }
        }
    }

    async fn a_tree_has_the_requested_depth_and_content(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        make(&other, &SMALL).await;
        for (depth, nodes) in [(0, 1), (1, 4), (2, 5), (9, 7)] {
            let cache = TreeCache::builder(&client, "/t").max_depth(depth).build().unwrap();
            soon(cache.ready()).await.unwrap();
            assert_eq!(cache.current().len(), nodes, "{depth}");
        }
        let selected = TreeCache::builder(&client, "/t").select(|path| match path {
            "/t/e" => panic!("planted"),
            path => !path.ends_with("/b"),
        });
        let selected = selected.build().unwrap();
        let mut observer = Observer::by(&selected);
        observer.until_next("ready").await;
        assert_eq!(observer.tree.keys().collect::<Vec<_>>(), ["/t", "/t/a", "/t/a-b"]);
        let bare = TreeCache::builder(&client, "/t").without_data().build().unwrap();
        soon(bare.ready()).await.unwrap();
        let current = bare.current();
        assert_eq!(current.len(), SMALL.len());
        let node = current.get("/t/a/b").unwrap();
        assert!(node.data.is_empty() && node.stat.data_length == 1);
        other.set("/t/a/b", "new", None).await.unwrap();
        make(&other, &[("/t/a/new", "")]).await;
        observer.until_next("apply /t/a/new").await;
        until(async || bare.current().get("/t/a/b").unwrap().stat.data_length == 3).await;
        until(async || bare.current().get("/t/a/new").is_some()).await;
        for bad in ["a", "/a/"] {
            assert_eq!(TreeCache::new(&client, bad).unwrap_err().kind(), ErrorKind::InvalidInput);
        }
    }

    async fn an_unreadable_node_affects_no_other(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        make(&other, &SMALL).await;
        other.set_acl("/t/a/b", [all_but_read()], None).await.unwrap();
        let cache = TreeCache::new(&client, "/t").unwrap();
        let mut observer = Observer::by(&cache);
        observer.until_next("ready").await;
        assert_eq!(observer.tree.keys().collect::<Vec<_>>(), ["/t", "/t/a", "/t/a-b", "/t/e"]);
        assert!(observer.log.contains(&"unreadable /t/a/b".to_owned()));
        let unreadable: Vec<_> = cache.current().unreadable().map(|(path, _)| path.to_string()).collect();
        assert_eq!(unreadable, ["/t/a/b"]);
        other.set_acl("/t/a/b", [Acl::open_unsafe()], None).await.unwrap();
        observer.until_tree(&tree(&SMALL)).await;
        assert_eq!(cache.current().unreadable().len(), 0);
        assert_eq!(observer.log.iter().filter(|entry| entry.starts_with("unreadable")).count(), 1);
    }

    async fn a_tree_whose_root_cannot_be_read_is_loaded_whole_once_it_can(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        make(&other, &SMALL).await;
        other.set_acl("/t", [all_but_read()], None).await.unwrap();
        let cache = TreeCache::new(&client, "/t").unwrap();
        let error = soon(cache.ready()).await.unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::NoAuth, Some("/t")));
        assert!(cache.last_error().is_some() && cache.is_stale());
        let mut observer = Observer::by(&cache);
        assert_eq!(observer.next().await.unwrap_err().kind(), ErrorKind::NoAuth);
        other.set_acl("/t", [Acl::open_unsafe()], None).await.unwrap();
        observer.until_next("ready").await;
        assert_eq!(observer.tree, tree(&SMALL));
        assert!(cache.last_error().is_none() && !cache.is_stale());
    }

    async fn a_slow_subscriber_gets_the_whole_content_again(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        make(&other, &[("/t", ""), ("/t/a", "")]).await;
        let cache = TreeCache::new(&client, "/t").unwrap();
        let (mut slow, mut quick) = (Observer::by(&cache), Observer::by(&cache));
        slow.until_next("ready").await;
        for n in 0..1_500 {
            let data = n.to_string();
            other.set("/t/a", data.clone(), None).await.unwrap();
            quick.until_tree(&tree(&[("/t", ""), ("/t/a", &data)])).await;
        }
        slow.until_tree(&tree(&[("/t", ""), ("/t/a", "1499")])).await;
        assert!(slow.log.contains(&"gap".to_owned()) && slow.log.len() < 1_000, "{}", slow.log.len());
    }

    async fn many_changes_and_broken_links_end_in_the_same_tree(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy) = (connect(&server).await, server.proxy().await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        make(&other, &[("/t", "")]).await;
        let cache = TreeCache::new(&client, "/t").unwrap();
        let mut observer = Observer::by(&cache);
        let change = async |seed: u32| {
            let mut random = seed;
            for n in 0..150 {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let path = format!("/t/{}/{}", random >> 30, (random >> 20) % 4);
                let path = if random.is_multiple_of(3) { format!("{path}/x") } else { path };
                // Another task may have changed the node first.
                let _ = match random >> 8 & 3 {
                    0 => other.delete_all(&path).await.is_ok(),
                    _ => other.create_or_set(&path, n.to_string(), CreateMode::Persistent).await.is_ok(),
                };
                if n % 40 == 20 && seed == 1 {
                    proxy.reset().await;
                }
                if n == 70 && seed == 1 {
                    server.expire(client.session_id().unwrap()).await.unwrap();
                }
            }
        };
        tokio::join!(change(1), change(2), change(3));
        // The servers may delete empty containers at any time.
        for _ in 0..3 {
            until(async || !cache.is_stale() && shown(&cache) == real(&other).await).await;
        }
        let last = shown(&cache);
        observer.until_tree(&last).await;
    }

    async fn caches_leave_no_watch_and_end_on_close(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        make(&client, &SMALL).await;
        for n in 0..100 {
            let cache = TreeCache::new(&client, "/t").unwrap();
            match n % 3 {
                0 => {}
                1 => tokio::task::yield_now().await,
                _ => soon(cache.ready()).await.unwrap(),
            }
        }
        if let Some(embedded) = server.as_embedded() {
            until(async || { client.sync("/").await.unwrap(); embedded.watch_count() == 0 }).await;
        }
        let cache = TreeCache::new(&client, "/t").unwrap();
        let mut events = cache.changes();
        soon(cache.ready()).await.unwrap();
        soon(client.close()).await;
        while soon(events.next()).await.is_some() {}
        assert!(cache.is_stale() && shown(&cache) == tree(&SMALL));
        assert_eq!(soon(cache.ready()).await.unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(TreeCache::new(&client, "/t").unwrap_err().kind(), ErrorKind::Closed);
    }
}
