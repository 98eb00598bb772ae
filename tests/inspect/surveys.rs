//! Surveys that follow a root.

use crate::followed::Followed;
use docent::inspect::{Inspector, Kind, Limits};
use docent::node::Acl;
use docent::node::Transaction;
use docent::{Client, CreateMode, ErrorKind, Mutex};
use docent_battery::{Backend, Dialect, Direction, TestServer, Traced, both_backends};
use docent_proto::OpCode;
use docent_tests::{builder, connect, soon, until};
use futures_util::StreamExt;
use std::time::Duration;

/// Commits a transaction until its outcome is known. `is_done` finds out whether one was applied whose
/// reply was lost, as on a busy machine.
async fn commit(transaction: impl Fn() -> Transaction, is_done: impl AsyncFn() -> bool) {
    while let Err(error) = soon(transaction().commit()).await {
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
        if is_done().await {
            return;
        }
    }
}

/// Creates counters below a root, a thousand per request.
async fn counters(client: &Client, folder: &str, count: usize) {
    soon(client.create(folder, "", CreateMode::Persistent)).await.unwrap();
    for thousand in 0..count.div_ceil(1_000) {
        let numbers = thousand * 1_000..count.min((thousand + 1) * 1_000);
        let path = |number: usize| format!("{folder}/n{number:05}");
        let create = || {
            numbers.clone().fold(client.transaction(), |create, number| {
                create.create(&path(number), "7", CreateMode::Persistent)
            })
        };
        commit(create, async || soon(client.exists(&path(numbers.start))).await.unwrap().is_some()).await;
    }
}

/// Waits until the embedded server has this many watches: each persistent one counts twice, because it is
/// in both tables of this version.
async fn has_watches(server: &TestServer, count: usize) {
    until(async || server.as_embedded().is_none_or(|server| server.watch_count() == count)).await;
}

both_backends! {
    async fn new_changed_and_deleted_recipes_are_reported(backend: Backend) {
        let server = backend.start().await;
        let (client, observer) = (connect(&server).await, connect(&server).await);
        let mut followed = Followed::new(Inspector::new(&observer).watch_below("/"));
        followed.first().await;
        assert_eq!((followed.kinds().len(), followed.is_stale, followed.unwatched), (0, false, 0));
        let mutex = Mutex::new(&client, "/app/locks/report").unwrap();
        let guard = soon(mutex.acquire()).await.unwrap();
        followed.until(|it| it.kinds() == [("/app/locks/report", Kind::Mutex)]).await;
        let waiting = tokio::spawn(mutex.acquire());
        followed.until(|it| it.contenders("/app/locks/report") == 2).await;
        // A plain node receives data.
        soon(client.create("/limit", "", CreateMode::Persistent)).await.unwrap();
        soon(client.set("/limit", "7", None)).await.unwrap();
        followed.until(|it| it.number("/limit").is_some()).await;
        waiting.abort();
        soon(guard.release()).await.unwrap();
        followed.until(|it| it.kinds() == [("/limit", Kind::Counter)]).await;
        assert!(followed.zxids.is_sorted() && followed.zxids[0] > 0, "{:?}", followed.zxids);
        assert_eq!(followed.snapshots, 1);
        observer.close().await;
        soon(async { while followed.next().await {} }).await;
    }

    async fn only_what_changed_is_read_again_and_nothing_while_idle(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let proxy = server.proxy().await;
        let observer = builder(&server, proxy.connect_string()).connect().await.unwrap();
        counters(&client, "/many", 3_000).await;
        let inspector = Inspector::builder(&observer).read_only().build();
        let mut followed = Followed::new(inspector.watch_below("/"));
        followed.until(|it| it.found.len() == 3_000).await;
        assert_eq!(followed.unwatched, 0);
        let requests = || {
            let asks = |op| op != Some(OpCode::Ping);
            let frames = proxy.trace();
            frames.iter().filter(|it| it.direction == Direction::ToServer && asks(it.op)).count()
        };
        let before = requests();
        // Longer than the interval at which nodes without a watch would be polled.
        tokio::time::sleep(Limits::default().look_every * 2).await;
        assert_eq!(requests(), before, "nothing may be requested while nothing changes");
        soon(client.set("/many/n02050", "9", None)).await.unwrap();
        followed.until(|it| it.number("/many/n02050") == Some("9")).await;
        // The data of the node and its children.
        assert!(requests() - before <= 2, "{}", requests() - before);
        assert_eq!(followed.deltas, 1);
        has_watches(&server, 2).await;
    }

    async fn any_number_of_subscribers_share_one_walk_and_one_watch(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let proxy = server.proxy().await;
        let observer = builder(&server, proxy.connect_string()).connect().await.unwrap();
        counters(&client, "/many", 100).await;
        let inspector = Inspector::builder(&observer).read_only().build();
        let mut all: Vec<_> = (0..20).map(|_| Followed::new(inspector.clone().watch_below("/"))).collect();
        let only = inspector.watch_below("/").select(|report| report.path == "/many/n00007");
        all.push(Followed::new(only));
        for followed in &mut all {
            followed.first().await;
        }
        let lists = |it: &&Traced| it.is_request(OpCode::GetChildren2);
        assert!(proxy.trace().iter().filter(lists).count() <= 110, "one walk lists each node once");
        has_watches(&server, 2).await;
        soon(client.set("/many/n00007", "8", None)).await.unwrap();
        for followed in &mut all {
            followed.until(|it| it.number("/many/n00007") == Some("8")).await;
            assert_eq!((followed.snapshots, followed.deltas), (1, 1));
        }
        let last = all.pop().unwrap();
        assert_eq!(last.found.len(), 1);
        drop(all);
        has_watches(&server, 2).await;
        drop(last);
        has_watches(&server, 0).await;
        // A later subscriber starts again.
        let mut again = Followed::new(inspector.watch_below("/"));
        again.until(|it| it.number("/many/n00007") == Some("8")).await;
    }

    async fn a_subscriber_that_is_not_polled_gets_a_fresh_snapshot(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let inspector = Inspector::new(&client);
        let (mut slow, mut fast) = (inspector.watch_below("/"), Followed::new(inspector.watch_below("/")));
        soon(slow.next()).await.unwrap().unwrap();
        fast.first().await;
        counters(&client, "/many", 3_000).await;
        fast.until(|it| it.found.len() == 3_000).await;
        soon(client.delete_all("/many")).await.unwrap();
        soon(client.create("/v", "7", CreateMode::Persistent)).await.unwrap();
        fast.until(|it| it.kinds() == [("/v", Kind::Counter)]).await;
        let mut slow = Followed::new(slow);
        slow.first().await;
        assert_eq!((slow.kinds(), slow.deltas), (vec![("/v", Kind::Counter)], 0));
    }

    async fn a_recipe_that_changes_its_kind_leaves_a_selection(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        soon(client.create("/v", "7", CreateMode::Persistent)).await.unwrap();
        let counters = Inspector::new(&client).watch_below("/").select(|it| it.kind() == Kind::Counter);
        let mut followed = Followed::new(counters);
        followed.until(|it| it.number("/v") == Some("7")).await;
        soon(client.set("/v", "seven", None)).await.unwrap();
        followed.until(|it| it.found.is_empty()).await;
        soon(client.set("/v", "8", None)).await.unwrap();
        followed.until(|it| it.number("/v") == Some("8")).await;
    }

    async fn a_root_that_is_deleted_and_created_again_is_followed(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mut followed = Followed::new(Inspector::new(&client).watch_below("/app"));
        followed.first().await;
        for number in ["7", "8"] {
            soon(client.create("/app", "", CreateMode::Persistent)).await.unwrap();
            soon(client.create("/app/limit", number, CreateMode::Persistent)).await.unwrap();
            followed.until(|it| it.number("/app/limit") == Some(number)).await;
            soon(client.delete_all("/app")).await.unwrap();
            followed.until(|it| it.found.is_empty()).await;
        }
        // Replaced in one transaction.
        soon(client.create("/app", "7", CreateMode::Persistent)).await.unwrap();
        followed.until(|it| it.number("/app") == Some("7")).await;
        let replace = client.transaction().delete("/app", None).create("/app", "9", CreateMode::Persistent);
        soon(replace.commit()).await.unwrap();
        followed.until(|it| it.number("/app") == Some("9")).await;
    }

    async fn ten_thousand_changes_at_once_and_during_the_walk_are_all_reported(backend: Backend) {
        let server = backend.start().await;
        let (client, observer) = (connect(&server).await, connect(&server).await);
        counters(&client, "/many", 5_000).await;
        let inspector = Inspector::new(&observer);
        let mut followed = Followed::new(inspector.watch_below("/"));
        let change = async |number: &'static str| {
            for thousand in 0..5 {
                let change = || {
                    (thousand * 1_000..(thousand + 1) * 1_000).fold(client.transaction(), |change, node| {
                        change.set(&format!("/many/n{node:05}"), number, None)
                    })
                };
                commit(change, async || false).await;
            }
        };
        let all_are = |number: &'static str| {
            move |it: &Followed| it.found.len() == 5_000 && it.found.keys().all(|path| it.number(path) == Some(number))
        };
        // The walk runs while the nodes change twice.
        let walk = followed.until(|it| it.found.len() == 5_000);
        let changes = async {
            change("8").await;
            change("9").await;
        };
        tokio::join!(walk, changes);
        followed.until(all_are("9")).await;
        change("10").await;
        followed.until(all_are("10")).await;
        assert_eq!(followed.snapshots, 1);
    }

    async fn a_survey_is_stale_during_an_outage_and_heals(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let proxy = server.proxy().await;
        let observer = builder(&server, proxy.connect_string()).connect().await.unwrap();
        for (path, data) in [("/same", "1"), ("/set", "1"), ("/deleted", "1"), ("/replaced", "1")] {
            soon(client.create(path, data, CreateMode::Persistent)).await.unwrap();
        }
        let mut followed = Followed::new(Inspector::new(&observer).watch_below("/"));
        followed.until(|it| it.found.len() == 4 && !it.is_stale).await;
        proxy.cut().await;
        followed.until(|it| it.is_stale).await;
        soon(client.set("/set", "2", None)).await.unwrap();
        soon(client.delete("/deleted", None)).await.unwrap();
        soon(client.delete("/replaced", None)).await.unwrap();
        soon(client.create("/replaced", "2", CreateMode::Persistent)).await.unwrap();
        soon(client.create("/created", "2", CreateMode::Persistent)).await.unwrap();
        proxy.heal().await.unwrap();
        followed.until(|it| !it.is_stale).await;
        let numbers: Vec<_> = followed.found.keys().map(|path| (&**path, followed.number(path).unwrap())).collect();
        assert_eq!(numbers, [("/created", "2"), ("/replaced", "2"), ("/same", "1"), ("/set", "2")]);
        // The watch works on the new link.
        soon(client.set("/same", "3", None)).await.unwrap();
        followed.until(|it| it.number("/same") == Some("3")).await;
        assert_eq!(followed.snapshots, 1);
    }

    async fn a_survey_outlives_its_session(backend: Backend) {
        let server = backend.start().await;
        let (client, observer) = (connect(&server).await, connect(&server).await);
        soon(client.create("/v", "1", CreateMode::Persistent)).await.unwrap();
        let mut followed = Followed::new(Inspector::new(&observer).watch_below("/"));
        followed.until(|it| it.number("/v") == Some("1")).await;
        server.expire(observer.session_id().unwrap()).await.unwrap();
        soon(client.set("/v", "2", None)).await.unwrap();
        followed.until(|it| it.number("/v") == Some("2") && !it.is_stale).await;
        soon(client.set("/v", "3", None)).await.unwrap();
        followed.until(|it| it.number("/v") == Some("3")).await;
    }

    async fn a_node_that_becomes_readable_is_reported(backend: Backend) {
        let server = backend.start().await;
        let observer = connect(&server).await;
        let owner = builder(&server, server.connect_string()).auth_digest("owner", "secret").allow_plaintext_auth();
        let owner = owner.acl([Acl::creator_all()]).connect().await.unwrap();
        soon(owner.create("/secret", "7", CreateMode::Persistent)).await.unwrap();
        let mut followed = Followed::new(Inspector::new(&observer).watch_below("/"));
        followed.first().await;
        assert!(followed.found.is_empty());
        soon(owner.set_acl("/secret", [Acl::open_unsafe()], None)).await.unwrap();
        followed.until(|it| it.number("/secret") == Some("7")).await;
    }

    async fn a_namespace_is_followed_with_its_own_paths(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        soon(client.create("/tenant", "", CreateMode::Persistent)).await.unwrap();
        let inside = builder(&server, server.connect_string()).namespace(format!("{}/tenant", server.root())).connect().await.unwrap();
        let mut followed = Followed::new(Inspector::new(&inside).watch_below("/"));
        followed.first().await;
        soon(client.create("/outside", "7", CreateMode::Persistent)).await.unwrap();
        soon(client.create("/tenant/limit", "7", CreateMode::Persistent)).await.unwrap();
        followed.until(|it| it.kinds() == [("/limit", Kind::Counter)]).await;
        soon(client.set("/tenant/limit", "8", None)).await.unwrap();
        followed.until(|it| it.number("/limit") == Some("8")).await;
        soon(client.delete("/tenant/limit", None)).await.unwrap();
        followed.until(|it| it.found.is_empty()).await;
    }

    async fn recipes_beyond_the_limit_appear_when_there_is_room(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        counters(&client, "/many", 10).await;
        let limits = Limits::default().nodes(6);
        let mut followed = Followed::new(Inspector::builder(&client).limits(limits).build().watch_below("/many"));
        followed.first().await;
        let shown: Vec<_> = followed.found.keys().cloned().collect();
        assert_eq!(shown, ["/many/n00000", "/many/n00001", "/many/n00002", "/many/n00003", "/many/n00004"]);
        soon(client.delete("/many/n00001", None)).await.unwrap();
        let has = |it: &Followed, path: &str| it.found.contains_key(path);
        followed.until(|it| has(it, "/many/n00005") && !has(it, "/many/n00001")).await;
        assert_eq!(followed.found.len(), 5);
    }

    async fn a_known_recipe_stays_when_the_limit_is_exceeded(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        counters(&client, "/many", 5).await;
        let limits = Limits::default().nodes(6);
        let mut followed = Followed::new(Inspector::builder(&client).limits(limits).build().watch_below("/many"));
        followed.first().await;
        let known: Vec<_> = followed.found.keys().cloned().collect();
        assert_eq!(known.len(), 5);
        // Both changes arrive together, and the new node is read first.
        let change = || {
            let change = client.transaction().set("/many/n00004", "8", None);
            change.create("/many/a", "7", CreateMode::Persistent)
        };
        commit(change, async || soon(client.exists("/many/a")).await.unwrap().is_some()).await;
        followed.until(|it| it.number("/many/n00004") == Some("8")).await;
        assert!(known.iter().all(|path| followed.found.contains_key(path)), "{:?}", followed.kinds());
    }

    async fn a_recipe_that_was_cut_appears_once_it_has_become_smaller(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        counters(&client, "/many", 4).await;
        soon(client.create("/many/p", "", CreateMode::Persistent)).await.unwrap();
        let contender = |number: usize| format!("/many/p/_c_8eb6557e-c51a-32d1-e0cb-91e4d5e9a5c5-lock-000000000{number}");
        for number in 0..3 {
            soon(client.create(&contender(number), "", CreateMode::Ephemeral)).await.unwrap();
        }
        let limits = Limits::default().nodes(8);
        let mut followed = Followed::new(Inspector::builder(&client).limits(limits).build().watch_below("/many"));
        followed.first().await;
        assert_eq!(followed.found.len(), 4);
        soon(client.delete(&contender(0), None)).await.unwrap();
        followed.until(|it| it.contenders("/many/p") == 2).await;
        assert_eq!(followed.found.len(), 5);
    }

    async fn all_recipes_that_fit_appear_after_a_large_one_was_deleted(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        counters(&client, "/many", 4).await;
        soon(client.create("/many/p", "", CreateMode::Persistent)).await.unwrap();
        for number in 0..5 {
            let contender = format!("/many/p/_c_8eb6557e-c51a-32d1-e0cb-91e4d5e9a5c5-lock-000000000{number}");
            soon(client.create(&contender, "", CreateMode::Ephemeral)).await.unwrap();
        }
        for path in ["/many/q", "/many/r", "/many/s"] {
            soon(client.create(path, "7", CreateMode::Persistent)).await.unwrap();
        }
        let limits = Limits::default().nodes(8);
        let mut followed = Followed::new(Inspector::builder(&client).limits(limits).build().watch_below("/many"));
        followed.first().await;
        assert_eq!(followed.found.len(), 4);
        soon(client.delete_all("/many/p")).await.unwrap();
        followed.until(|it| it.found.len() == 7).await;
    }

    async fn a_recipe_that_was_shown_in_part_is_completed_when_there_is_room(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        counters(&client, "/many", 4).await;
        let mutex = Mutex::new(&client, "/many/p").unwrap();
        let guard = soon(mutex.acquire()).await.unwrap();
        let limits = Limits::default().nodes(7);
        let mut followed = Followed::new(Inspector::builder(&client).limits(limits).build().watch_below("/many"));
        followed.first().await;
        assert_eq!(followed.contenders("/many/p"), 1);
        let waiting = tokio::spawn(mutex.acquire());
        let is_partial = |it: &Followed| it.found.get("/many/p").is_some_and(|lock| !lock.is_complete());
        followed.until(is_partial).await;
        soon(client.delete("/many/n00001", None)).await.unwrap();
        followed.until(|it| !is_partial(it) && it.contenders("/many/p") == 2).await;
        guard.release().await.unwrap();
        soon(waiting).await.unwrap().unwrap().release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn servers_without_persistent_watches_are_followed_by_one_shot_watches_and_polls() {
    let server = Backend::As(Dialect::ZooKeeper35).start().await;
    let client = connect(&server).await;
    counters(&client, "/many", 20).await;
    let limits = Limits::default().watches(10).look_every(Duration::from_secs(1));
    let mut followed = Followed::new(Inspector::builder(&client).limits(limits).build().watch_below("/"));
    followed.until(|it| it.found.len() == 20 && it.unwatched > 0).await;
    for path in ["/many/n00000", "/many/n00019"] {
        soon(client.set(path, "8", None)).await.unwrap();
        followed.until(|it| it.number(path) == Some("8")).await;
    }
    soon(client.delete("/many/n00007", None)).await.unwrap();
    followed.until(|it| it.found.len() == 19).await;
}
