//! Reports that follow a path.

use docent::inspect::{Inspector, Kind, Limits, Live, Recipe, Reports};
use docent::queue::PutOptions;
use docent::{CreateMode, Mutex, Queue};
use docent_battery::{Backend, Dialect, both_backends};
use docent_tests::{connect, soon};
use futures_util::StreamExt;
use std::time::Duration;

/// Returns the next report for which `holds` returns true.
async fn next_with(reports: &mut Reports, holds: impl Fn(&Live) -> bool) -> Live {
    soon(async {
        loop {
            let live = reports.next().await.unwrap().unwrap();
            if holds(&live) {
                return live;
            }
        }
    })
    .await
}

fn contenders(live: &Live) -> usize {
    match &live.report.recipe {
        Recipe::Mutex(line) => line.contenders.len(),
        _ => 0,
    }
}

fn waiters(live: &Live) -> Option<usize> {
    match &live.report.recipe {
        Recipe::Semaphore(semaphore) => Some(semaphore.waiters.len()),
        _ => None,
    }
}

both_backends! {
    async fn the_part_of_a_recipe_that_lies_beside_it_is_followed_as_well(backend: Backend) {
        let server = backend.start().await;
        let (client, observer) = (connect(&server).await, connect(&server).await);
        let hex = "8eb6557ec51a32d1e0cb91e4d5e9a5c5";
        soon(client.create("/s", "1", CreateMode::Persistent)).await.unwrap();
        soon(client.create(&format!("/s/{hex}"), "worker-1", CreateMode::Ephemeral)).await.unwrap();
        let mut reports = Inspector::new(&observer).watch("/s");
        next_with(&mut reports, |live| waiters(live) == Some(0)).await;
        // kazoo keeps the waiters of its semaphore here.
        soon(client.create("/s-__lock__", "", CreateMode::Persistent)).await.unwrap();
        let waiter = format!("/s-__lock__/{hex}__lock__0000000000");
        for _ in 0..2 {
            soon(client.create(&waiter, "worker-2", CreateMode::Ephemeral)).await.unwrap();
            next_with(&mut reports, |live| waiters(live) == Some(1)).await;
            soon(client.delete(&waiter, None)).await.unwrap();
            next_with(&mut reports, |live| waiters(live) == Some(0)).await;
        }
    }

    async fn a_path_is_followed_from_absence_through_changes_to_the_end(backend: Backend) {
        let server = backend.start().await;
        let (client, observer) = (connect(&server).await, connect(&server).await);
        let mut reports = Inspector::new(&observer).watch("/m");
        let first = soon(reports.next()).await.unwrap().unwrap();
        assert_eq!((first.report.kind(), first.is_stale, first.unwatched), (Kind::Absent, false, 0));
        let mutex = Mutex::new(&client, "/m").unwrap();
        let guard = soon(mutex.acquire()).await.unwrap();
        next_with(&mut reports, |live| contenders(live) == 1).await;
        let waiting = tokio::spawn(mutex.acquire());
        let both = next_with(&mut reports, |live| contenders(live) == 2).await;
        let Recipe::Mutex(line) = both.report.recipe else { panic!("no mutex") };
        assert_eq!(line.contenders[1].waits_for.as_ref(), Some(&line.contenders[0].name));
        soon(guard.release()).await.unwrap();
        let second = line.contenders[1].name.clone();
        let is_granted = |live: &Live| match &live.report.recipe {
            Recipe::Mutex(line) => line.holders().any(|holder| holder.name == second),
            _ => false,
        };
        next_with(&mut reports, is_granted).await;
        soon(soon(waiting).await.unwrap().unwrap().release()).await.unwrap();
        observer.close().await;
        soon(async { while reports.next().await.is_some() {} }).await;
        assert!(soon(reports.next()).await.is_none());
    }

    async fn a_change_of_data_alone_is_reported(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = Mutex::new(&client, "/m").unwrap();
        let _guard = soon(mutex.acquire()).await.unwrap();
        let mut reports = Inspector::new(&client).watch("/m");
        next_with(&mut reports, |live| contenders(live) == 1).await;
        let holder = soon(mutex.participants()).await.unwrap().remove(0);
        soon(mutex.revoke(&holder)).await.unwrap();
        let is_revoked = |live: &Live| match &live.report.recipe {
            Recipe::Mutex(line) => line.contenders.iter().any(|one| one.is_revoked),
            _ => false,
        };
        next_with(&mut reports, is_revoked).await;
    }

    async fn a_change_of_an_unread_value_is_reported(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        soon(client.create("/v", vec![b'x'; 600], CreateMode::Persistent)).await.unwrap();
        let mut reports = Inspector::new(&client).watch("/v");
        soon(reports.next()).await.unwrap().unwrap();
        soon(client.set("/v", vec![b'y'; 601], None)).await.unwrap();
        let is_new = |live: &Live| matches!(&live.report.recipe, Recipe::Value(value) if value.size == 601);
        next_with(&mut reports, is_new).await;
    }

    async fn a_delayed_item_is_announced_when_it_is_due(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = Queue::<u32>::new(&client, "/q").unwrap();
        soon(jobs.put_with(&7, PutOptions::default().delay(Duration::from_millis(1_500)))).await.unwrap();
        let mut reports = Inspector::new(&client).watch("/q");
        let delayed = |live: &Live| match &live.report.recipe {
            Recipe::Queue(queue) => queue.delayed,
            _ => usize::MAX,
        };
        assert_eq!(delayed(&soon(reports.next()).await.unwrap().unwrap()), 1);
        next_with(&mut reports, |live| delayed(live) == 0).await;
    }

    async fn a_report_is_stale_during_an_outage(backend: Backend) {
        let server = backend.start_own().await;
        let client = connect(&server).await;
        soon(client.create("/v", "one", CreateMode::Persistent)).await.unwrap();
        let mut reports = Inspector::new(&client).watch("/v");
        next_with(&mut reports, |live| live.report.kind() == Kind::Value && !live.is_stale).await;
        server.stop().await;
        let stale = next_with(&mut reports, |live| live.is_stale).await;
        assert_eq!(stale.report.kind(), Kind::Value);
        server.start_again().await;
        next_with(&mut reports, |live| !live.is_stale).await;
    }
}

#[tokio::test(start_paused = true)]
async fn unwatched_nodes_are_polled() {
    let server = Backend::As(Dialect::ZooKeeper35).start().await;
    let client = connect(&server).await;
    soon(client.create("/g", "", CreateMode::Persistent)).await.unwrap();
    soon(client.create("/g/a", "one", CreateMode::Ephemeral)).await.unwrap();
    let limits = Limits::default().watches(1).look_every(Duration::from_secs(1));
    let mut reports = Inspector::builder(&client).limits(limits).build().watch("/g");
    assert_eq!(soon(reports.next()).await.unwrap().unwrap().unwatched, 2);
    soon(client.set("/g/a", "two", None)).await.unwrap();
    let is_new = |live: &Live| match &live.report.recipe {
        Recipe::Membership(group) => group.members[0].data.as_ref().unwrap().as_str() == Some("two"),
        _ => false,
    };
    next_with(&mut reports, is_new).await;
}

#[tokio::test(start_paused = true)]
async fn watches_are_bounded_and_the_others_are_counted() {
    let server = Backend::As(Dialect::ZooKeeper35).start().await;
    let client = connect(&server).await;
    for name in ["/g/a", "/g/b", "/g/c", "/g/d", "/g/e"] {
        if name == "/g/a" {
            soon(client.create("/g", "", CreateMode::Persistent)).await.unwrap();
        }
        soon(client.create(name, "", CreateMode::Ephemeral)).await.unwrap();
    }
    let inspector = Inspector::builder(&client).limits(Limits::default().watches(2)).build();
    let mut reports = inspector.watch("/g");
    let first = soon(reports.next()).await.unwrap().unwrap();
    // The folder with its five members exceeds the limit. The two watches are on the folder's names and
    // stat.
    assert_eq!((first.report.kind(), first.unwatched), (Kind::Membership, 5));
    soon(client.delete("/g/e", None)).await.unwrap();
    next_with(&mut reports, |live| live.unwatched == 4).await;
}
