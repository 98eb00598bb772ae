//! Caches of the children of a node.

use crate::{PERSISTENT, both_backends, builder, connect};
use docent::cache::{ChildrenCache, ChildrenEvent, ChildrenEvents};
use docent::node::{Acl, Permissions};
use docent::{Client, CreateMode, Error, ErrorKind};
use docent_battery::Backend;
use docent_tests::soon;
use futures_util::StreamExt;
use std::collections::BTreeMap;

/// Children as a subscriber knows them from events alone.
pub(crate) struct Observer {
    events: ChildrenEvents,
    pub(crate) children: BTreeMap<String, String>,
    /// Transactions that created the children.
    created: BTreeMap<String, i64>,
    pub(crate) log: Vec<String>,
}

impl Observer {
    pub(crate) fn by(cache: &ChildrenCache) -> Self {
        Self { events: cache.changes(), children: BTreeMap::new(), created: BTreeMap::new(), log: Vec::new() }
    }

    /// Applies one event. Returns `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Result<ChildrenEvent, Error>> {
        let event = soon(self.events.next()).await?;
        let (entry, name) = match &event {
            Ok(ChildrenEvent::Init) => {
                self.children.clear();
                self.created.clear();
                ("init", "")
            }
            Ok(event @ (ChildrenEvent::Added(name, node) | ChildrenEvent::Updated(name, node))) => {
                let known = self.created.insert(name.to_string(), node.stat.czxid);
                let is_same = known == Some(node.stat.czxid);
                assert_eq!(matches!(event, ChildrenEvent::Updated(..)), is_same, "{event:?}");
                let data = String::from_utf8(node.data.to_vec()).unwrap();
                self.children.insert(name.to_string(), data);
                ("apply ", &**name)
            }
            Ok(ChildrenEvent::Delete(name)) => {
                assert!(self.children.remove(&**name).is_some(), "{name} was deleted, but is unknown");
                self.created.remove(&**name);
                ("delete ", &**name)
            }
            Ok(ChildrenEvent::Unreadable(name, _)) => ("unreadable ", &**name),
            Err(_) => ("failed", ""),
            Ok(ChildrenEvent::Gap) => ("gap", ""),
            Ok(ChildrenEvent::Ready) => ("ready", ""),
            _ => ("other", ""),
        };
        self.log.push(format!("{entry}{name}"));
        Some(event)
    }

    /// Reads until `condition` is met.
    pub(crate) async fn until(&mut self, condition: impl Fn(&Self) -> bool) {
        while !condition(self) {
            let _ = self.next().await.expect("the client is open");
        }
    }

    /// Reads until the children are `expected`.
    pub(crate) async fn until_children(&mut self, expected: &[(&str, &str)]) {
        let expected: BTreeMap<_, _> =
            expected.iter().map(|(name, data)| ((*name).to_owned(), (*data).to_owned())).collect();
        self.until(|observer| observer.children == expected).await;
    }

    /// Reads until the next event named `entry`.
    pub(crate) async fn until_next(&mut self, entry: &str) {
        self.log.clear();
        self.until(|observer| observer.log.last().is_some_and(|last| last == entry)).await;
    }
}

/// The children that the cache currently shows.
pub(crate) fn shown(cache: &ChildrenCache) -> BTreeMap<String, String> {
    let current = cache.current();
    let text = |data: &[u8]| String::from_utf8(data.to_vec()).unwrap();
    current.iter().map(|(name, node)| (name.to_string(), text(&node.data))).collect()
}

/// Grants everyone every permission except READ.
pub(crate) fn all_but_read() -> Acl {
    let permissions = Permissions::WRITE | Permissions::CREATE | Permissions::DELETE | Permissions::ADMIN;
    Acl::new(permissions, "world", "anyone")
}

/// Creates `/f` with children whose names and data are `names`.
pub(crate) async fn folder(client: &Client, names: impl IntoIterator<Item = impl AsRef<str>>) {
    client.create("/f", "", CreateMode::Persistent).await.unwrap();
    let mut transaction = client.transaction();
    let mut any = false;
    for name in names {
        let name = name.as_ref();
        transaction = transaction.create(&format!("/f/{name}"), name.to_owned(), CreateMode::Persistent);
        any = true;
    }
    if any {
        transaction.commit().await.unwrap();
    }
}

both_backends! {
    async fn children_and_their_changes_are_shown_and_reported(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        folder(&other, ["a", "b"]).await;
        let cache = ChildrenCache::new(&client, "/f").unwrap();
        assert!(cache.is_stale() && cache.stale_for().is_some() && cache.current().is_empty());
        let mut observer = Observer::by(&cache);
        soon(cache.ready()).await.unwrap();
        assert!(!cache.is_stale() && cache.stale_for().is_none());
        observer.until_next("ready").await;
        assert_eq!(observer.log, ["init", "apply a", "apply b", "ready"]);
        let before = cache.current();
        other.create("/f/c", "c", CreateMode::Persistent).await.unwrap();
        other.set("/f/a", "new", None).await.unwrap();
        other.delete("/f/b", None).await.unwrap();
        observer.until_children(&[("a", "new"), ("c", "c")]).await;
        assert_eq!(shown(&cache), observer.children);
        // A child's own watch may report its deletion before the folder is listed again. With a persistent
        // watch, the folder is not listed again.
        let is_listed = || client.health().persistent_watches || cache.current().folder().unwrap().cversion == 4;
        soon(async { while !is_listed() { docent_tests::pause().await; } }).await;
        assert_eq!((before.len(), &*before.get("a").unwrap().data), (2, &b"a"[..]), "a snapshot does not change");
        let mut late = Observer::by(&cache);
        late.until_next("ready").await;
        assert_eq!(late.log, ["init", "apply a", "apply c", "ready"]);
    }

    async fn a_folder_is_waited_for_and_followed_through_deletion_and_creation(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let cache = ChildrenCache::new(&client, "/f").unwrap();
        let mut observer = Observer::by(&cache);
        observer.until_next("ready").await;
        assert_eq!(observer.log, ["init", "ready"], "a missing folder has no children");
        assert!(cache.current().folder().is_none());
        for data in ["1", "2", "3"] {
            other.create("/f/a", data, CreateMode::Persistent).await.unwrap();
            observer.until_children(&[("a", data)]).await;
            assert!(cache.current().folder().is_some());
            other.transaction().delete("/f/a", None).delete("/f", None).commit().await.unwrap();
            observer.until_children(&[]).await;
            soon(async { while cache.current().folder().is_some() { docent_tests::pause().await; } }).await;
        }
    }

    async fn a_re_created_child_is_reported_although_its_version_is_the_same(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        folder(&other, ["a"]).await;
        let cache = ChildrenCache::new(&client, "/f").unwrap();
        soon(cache.ready()).await.unwrap();
        let before = cache.current().get("a").unwrap().stat;
        let mut observer = Observer::by(&cache);
        observer.until_next("ready").await;
        let again = other.transaction().delete("/f/a", None).create("/f/a", "a", CreateMode::Persistent);
        again.commit().await.unwrap();
        observer.until_next("apply a").await;
        let after = cache.current().get("a").unwrap().stat;
        assert_eq!(after.version, before.version);
        assert!(after.czxid > before.czxid);
    }

    async fn an_unreadable_child_affects_no_other(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        folder(&other, ["a", "b"]).await;
        other.set_acl("/f/b", [all_but_read()], None).await.unwrap();
        let cache = ChildrenCache::new(&client, "/f").unwrap();
        soon(cache.ready()).await.unwrap();
        let mut observer = Observer::by(&cache);
        observer.until_next("ready").await;
        assert_eq!(observer.log, ["init", "apply a", "unreadable b", "ready"]);
        let current = cache.current();
        let (name, error) = current.unreadable().next().unwrap();
        assert_eq!((&**name, error.kind(), error.path()), ("b", ErrorKind::NoAuth, Some("/f/b")));
        other.set("/f/a", "new", None).await.unwrap();
        observer.until_children(&[("a", "new")]).await;
        other.set_acl("/f/b", [Acl::open_unsafe()], None).await.unwrap();
        observer.until_children(&[("a", "new"), ("b", "b")]).await;
        assert_eq!(cache.current().unreadable().len(), 0);
        // From now on the cache follows this child like any other.
        other.set("/f/b", "new", None).await.unwrap();
        observer.until_children(&[("a", "new"), ("b", "new")]).await;
    }

    async fn a_folder_that_may_not_be_listed_is_reported_and_retried(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        folder(&other, ["a"]).await;
                other.set_acl("/f", [all_but_read()], None).await.unwrap();
        let cache = ChildrenCache::new(&client, "/f").unwrap();
        let mut observer = Observer::by(&cache);
        let error = soon(cache.ready()).await.unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::NoAuth, Some("/f")));
        assert_eq!(cache.last_error().map(|error| error.kind()), Some(ErrorKind::NoAuth));
        observer.until_next("failed").await;
        other.set_acl("/f", [Acl::open_unsafe()], None).await.unwrap();
        observer.until_next("ready").await;
        assert_eq!(observer.log, ["init", "apply a", "ready"], "the failure is told once");
        assert!(cache.last_error().is_none() && !cache.is_stale());
        // If the listing fails later, the cache keeps the known children and marks them as stale.
        other.set_acl("/f", [all_but_read()], None).await.unwrap();
        proxy.reset().await;
        observer.until_next("failed").await;
        assert!(cache.is_stale());
        assert_eq!(cache.current().len(), 1);
        other.create("/f/b", "b", CreateMode::Persistent).await.unwrap();
        other.set_acl("/f", [Acl::open_unsafe()], None).await.unwrap();
        observer.until_next("ready").await;
        observer.until_children(&[("a", "a"), ("b", "b")]).await;
    }

    async fn on_close_streams_end_and_the_known_content_remains(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        folder(&client, ["a"]).await;
        let cache = ChildrenCache::new(&client, "/f").unwrap();
        soon(cache.ready()).await.unwrap();
        let (mut observer, mut fresh) = (Observer::by(&cache), Observer::by(&cache));
        observer.until_next("ready").await;
        soon(client.close()).await;
        assert!(observer.next().await.is_none());
        while fresh.next().await.is_some() {}
        assert!(cache.is_stale());
        assert_eq!(cache.current().len(), 1);
        assert_eq!(soon(cache.ready()).await.unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(ChildrenCache::new(&client, "/f").unwrap_err().kind(), ErrorKind::Closed);
    }

    async fn a_cache_keeps_no_client_open(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let cache = ChildrenCache::new(&client, "/f").unwrap();
        let mut observer = Observer::by(&cache);
        drop(client);
        while observer.next().await.is_some() {}
        assert_eq!(soon(cache.ready()).await.unwrap_err().kind(), ErrorKind::Closed);
    }

    async fn a_bad_path_is_refused(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        for path in ["", "f", "/f/", "/f//g"] {
            assert_eq!(ChildrenCache::new(&client, path).unwrap_err().kind(), ErrorKind::InvalidInput, "{path:?}");
        }
        // The root of a namespace has children like any other node.
        client.create("/a", "1", CreateMode::Persistent).await.unwrap();
        let cache = ChildrenCache::new(&client, "/").unwrap();
        soon(cache.ready()).await.unwrap();
        assert_eq!(shown(&cache).get("a").map(String::as_str), Some("1"));
    }

    async fn caches_and_streams_of_one_path_share_a_watch_and_leave_none(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        folder(&other, ["a", "b", "c"]).await;
        let caches = [(); 3].map(|()| ChildrenCache::new(&client, "/f").unwrap());
        for cache in &caches {
            soon(cache.ready()).await.unwrap();
        }
        let mut children = client.watch_children("/f").unwrap();
        assert_eq!(soon(children.next()).await.unwrap().unwrap().unwrap().names.len(), 3);
        let mut data = client.watch_data("/f/a").unwrap();
        soon(data.next()).await.unwrap().unwrap();
        if let Some(embedded) = server.as_embedded() {
            let expected = if PERSISTENT { 2 + 1 } else { 1 + 3 };
            assert_eq!(embedded.watch_count(), expected, "wrong number of watches");
        }
        other.set("/f/a", "new", None).await.unwrap();
        for cache in &caches {
            Observer::by(cache).until_children(&[("a", "new"), ("b", "b"), ("c", "c")]).await;
        }
        drop((children, data));
        let last = caches.into_iter().next().unwrap();
        client.sync("/").await.unwrap();
        other.set("/f/b", "new", None).await.unwrap();
        Observer::by(&last).until_children(&[("a", "new"), ("b", "new"), ("c", "c")]).await;
        drop(last);
        if let Some(embedded) = server.as_embedded() {
            soon(async { while embedded.watch_count() > 0 { client.sync("/").await.unwrap(); } }).await;
        }
    }

    async fn a_thousand_caches_and_subscribers_leave_nothing(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        folder(&client, ["a", "b"]).await;
        let steady = ChildrenCache::new(&client, "/f").unwrap();
        for n in 0..1_000 {
            let cache = ChildrenCache::new(&client, "/f").unwrap();
            let mut observer = Observer::by(&cache);
            drop(cache);
            // The subscriber is dropped immediately, while loading, or when the cache is ready.
            match n % 4 {
                0 => {}
                1 => tokio::task::yield_now().await,
                2 => client.sync("/").await.unwrap(),
                _ => observer.until_next("ready").await,
            }
        }
        drop(steady);
        if let Some(embedded) = server.as_embedded() {
            soon(async { while embedded.watch_count() > 0 { client.sync("/").await.unwrap(); } }).await;
        }
        // All tasks have ended, so the close has none to wait for.
        soon(client.close()).await;
    }

    async fn a_slow_subscriber_blocks_no_other_and_gets_the_whole_content_again(backend: Backend) {
        const ROUNDS: usize = 12;
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        folder(&other, [""; 0]).await;
        let cache = ChildrenCache::new(&client, "/f").unwrap();
        let (mut slow, mut quick) = (Observer::by(&cache), Observer::by(&cache));
        slow.until_next("ready").await;
        for round in 0..ROUNDS {
            let (mut creates, mut deletes) = (other.transaction(), other.transaction());
            for n in 0..100 {
                let path = format!("/f/{round}-{n}");
                creates = creates.create(&path, "x", CreateMode::Persistent);
                deletes = deletes.delete(&path, None);
            }
            creates.commit().await.unwrap();
            quick.until(|observer| observer.children.len() == 100).await;
            deletes.commit().await.unwrap();
            quick.until(|observer| observer.children.is_empty()).await;
        }
        other.create("/f/last", "x", CreateMode::Persistent).await.unwrap();
        quick.until_children(&[("last", "x")]).await;
        assert!(!quick.log.iter().any(|entry| entry == "gap"));
        slow.until_next("ready").await;
        assert_eq!(slow.log, ["gap", "init", "apply last", "ready"]);
    }

    async fn a_cache_started_before_the_link_is_ready_later(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy) = (connect(&server).await, server.proxy().await);
        folder(&other, ["a"]).await;
        proxy.cut().await;
        let client = builder(&server, proxy.connect_string()).build().unwrap();
        let cache = ChildrenCache::new(&client, "/f").unwrap();
        assert!(futures_util::poll!(std::pin::pin!(cache.ready())).is_pending());
        let hasty = ChildrenCache::new(
            &client.with_operation_timeout(std::time::Duration::from_millis(1)), "/f").unwrap();
        assert_eq!(soon(hasty.ready()).await.unwrap_err().kind(), ErrorKind::Timeout);
        proxy.heal().await.unwrap();
        soon(cache.ready()).await.unwrap();
        assert_eq!(cache.current().len(), 1);
    }
}
