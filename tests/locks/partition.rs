//! A set of items that the members of a group share.

use docent::locks::{Partitioner, Share, ShareEnd};
use docent::{Client, CreateMode, ErrorKind};
use docent_battery::{Backend, Rule, TestServer, both_backends};
use docent_proto::OpCode;
use docent_tests::{SHORT_SESSION, builder, child_count, connect, refuses_bad_paths, soon, until};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const ITEMS: usize = 7;

fn items() -> impl Iterator<Item = String> {
    (0..ITEMS).map(|n| format!("item-{n}"))
}

/// Joins a member that shares items as soon as it knows the members.
fn member(client: &Client, identity: &str) -> Partitioner {
    let settings = Partitioner::builder(client, "/p", items()).identity(identity);
    settings.settle(Duration::from_millis(50)).join().unwrap()
}

/// Releases `share` after the members have changed.
async fn released(share: Share) {
    assert_eq!(soon(share.changed()).await, Some(ShareEnd::MembersChanged));
    assert!(share.is_held() && !share.is_current());
    soon(share.release()).await.unwrap();
}

/// Checks that the shares cover all items, each once, as evenly as possible.
fn are_whole(shares: &[Share]) {
    let mut all: Vec<_> = shares.iter().flat_map(|share| share.items().to_vec()).collect();
    all.sort();
    assert_eq!(all, items().collect::<Vec<_>>());
    for share in shares {
        let even = ITEMS / shares.len();
        assert!((even..=even + 1).contains(&share.items().len()), "{share:?}");
        assert!(share.is_current() && share.members() == shares.len());
        assert!(share.items().iter().all(|item| share.fence(item).is_some()));
    }
}

async fn is_empty_below(server: &TestServer, path: &str) {
    let other = connect(server).await;
    until(async || child_count(&other, path).await == 0).await;
}

both_backends! {
    async fn items_are_redistributed_when_members_join_and_leave(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let a = member(&client, "a");
        let whole = soon(a.acquire()).await.unwrap();
        are_whole(std::slice::from_ref(&whole));
        whole.guard().unwrap().verify().await.unwrap();
        let b = member(&other, "b");
        released(whole).await;
        until(async || b.members() == 2).await;
        let (share_a, share_b) = tokio::join!(soon(a.acquire()), soon(b.acquire()));
        let (share_a, share_b) = (share_a.unwrap(), share_b.unwrap());
        assert_eq!(share_a.items(), ["item-0", "item-2", "item-4", "item-6"]);
        are_whole(&[share_a, share_b]);
        soon(b.leave()).await.unwrap();
        let whole = soon(a.acquire()).await.unwrap();
        are_whole(std::slice::from_ref(&whole));
        soon(client.close()).await;
        assert!(matches!(soon(whole.changed()).await, Some(ShareEnd::Lost(_)) | None));
        assert!(soon(a.acquire()).await.is_err());
    }

    async fn an_item_moves_only_after_its_share_is_released(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let a = member(&client, "a");
        let whole = soon(a.acquire()).await.unwrap();
        let b = member(&other, "b");
        let mut waiting = Box::pin(b.acquire());
        assert_eq!(soon(async {
            tokio::select! {
                end = whole.changed() => end,
                _ = &mut waiting => panic!("the items are still held"),
            }
        }).await, Some(ShareEnd::MembersChanged));
        // The new member waits as long as the items are held.
        assert!(tokio::time::timeout(Duration::from_millis(300), &mut waiting).await.is_err());
        assert!(whole.is_held());
        drop(whole);
        let share = soon(waiting).await.unwrap();
        assert_eq!(share.items(), ["item-1", "item-3", "item-5"]);
    }

    async fn more_members_than_items_leave_some_without(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let only = |identity: &str| {
            let settings = Partitioner::builder(&client, "/p", ["only"]).identity(identity);
            settings.settle(Duration::from_millis(50)).join().unwrap()
        };
        let members = ["a", "b", "c"].map(only);
        until(async || members.iter().all(|member| member.members() == 3)).await;
        let shares = soon(futures_util::future::join_all(members.iter().map(Partitioner::acquire))).await;
        let shares: Vec<_> = shares.into_iter().map(Result::unwrap).collect();
        assert_eq!(shares.iter().map(|share| share.items().len()).collect::<Vec<_>>(), [1, 0, 0]);
        assert!(shares[1].is_held() && shares[1].guard().is_none() && shares[1].fence("only").is_none());
        assert_eq!(shares[1].run(async { 7 }).await.unwrap(), 7);
    }

    async fn a_lost_session_loses_the_share_and_the_next_session_gets_the_same_items(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (a, b) = (member(&client, "a"), member(&other, "b"));
        until(async || a.members() == 2 && b.members() == 2).await;
        let (share_a, share_b) = tokio::join!(soon(a.acquire()), soon(b.acquire()));
        let (share_a, share_b) = (share_a.unwrap(), share_b.unwrap());
        let items = share_a.items().to_vec();
        server.expire(client.session_id().unwrap()).await.unwrap();
        assert!(matches!(soon(share_a.changed()).await, Some(ShareEnd::Lost(_))));
        assert!(!share_a.is_held() && share_a.run(std::future::pending::<()>()).await.is_err());
        drop(share_a);
        // The other member may have noticed the short absence.
        drop(share_b);
        until(async || a.members() == 2 && b.members() == 2).await;
        let (share_a, share_b) = tokio::join!(soon(a.acquire()), soon(b.acquire()));
        let (share_a, share_b) = (share_a.unwrap(), share_b.unwrap());
        assert_eq!(share_a.items(), items);
        are_whole(&[share_a, share_b]);
    }

    async fn lost_replies_and_links_cost_nothing_but_time(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let b = member(&other, "b");
        for (op, nth) in [(OpCode::Multi, 1), (OpCode::Multi, 2), (OpCode::Create2, 2), (OpCode::GetChildren2, 2)] {
            for rule in [Rule::on(op).nth(nth).reset_after(), Rule::on(op).nth(nth).reset_before()] {
                proxy.add(rule);
                let a = member(&client, "a");
                until(async || a.members() == 2 && b.members() == 2).await;
                let (share_a, share_b) = tokio::join!(soon(a.acquire()), soon(b.acquire()));
                let (share_a, share_b) = (share_a.unwrap(), share_b.unwrap());
                are_whole(&[share_a, share_b]);
                soon(a.leave()).await.unwrap();
                until(async || b.members() == 1).await;
            }
        }
    }

    async fn no_item_is_held_twice_while_members_join_and_leave(backend: Backend) {
        let server = backend.start().await;
        let held: Arc<Vec<AtomicUsize>> = Arc::new((0..ITEMS).map(|_| AtomicUsize::new(0)).collect());
        let work = async |client: Client, identity: String| {
            for round in 0..4 {
                let partitioner = member(&client, &identity);
                let share = soon(partitioner.acquire()).await.unwrap();
                let own: Vec<usize> = share.items().iter().map(|item| item[5..].parse().unwrap()).collect();
                for item in &own {
                    assert_eq!(held[*item].fetch_add(1, Ordering::SeqCst), 0, "{item}");
                }
                for _ in 0..3 {
                    share.run(tokio::task::yield_now()).await.unwrap();
                }
                for item in &own {
                    held[*item].fetch_sub(1, Ordering::SeqCst);
                }
                if round % 2 == 0 {
                    soon(share.release()).await.unwrap();
                }
            }
        };
        let clients = [connect(&server).await, connect(&server).await, connect(&server).await];
        let mut members = Vec::new();
        for (n, client) in clients.into_iter().enumerate() {
            members.push(work(client, format!("m{n}")));
        }
        futures_util::future::join_all(members).await;
        is_empty_below(&server, "/p/party").await;
    }

    async fn a_dropped_acquire_leaves_no_node(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (a, b) = (member(&client, "a"), member(&other, "b"));
        until(async || a.members() == 2 && b.members() == 2).await;
        let held = soon(b.acquire()).await.unwrap();
        for limit in [1, 20, 60, 100] {
            let _ = tokio::time::timeout(Duration::from_millis(limit), a.acquire()).await;
        }
        drop(held);
        drop((a, b));
        is_empty_below(&server, "/p/party").await;
        for item in items() {
            is_empty_below(&server, &format!("/p/locks/{item}")).await;
        }
    }

    async fn bad_input_and_missing_permissions_are_refused(backend: Backend) {
        let server = backend.start().await;
        let settings = builder(&server, server.connect_string()).session_timeout(SHORT_SESSION);
        let client = settings.connect().await.unwrap();
        refuses_bad_paths(|path| Partitioner::new(&client, path, ["a"]).map(drop));
        for bad in ["", "a/b", ".."] {
            let error = Partitioner::new(&client, "/p", [bad]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{bad}");
        }
        let slash = Partitioner::builder(&client, "/p", ["a"]).identity("a/b").join();
        assert_eq!(slash.unwrap_err().kind(), ErrorKind::InvalidInput);
        client.create("/q/party", "", CreateMode::Persistent).await.unwrap();
        client.set_acl("/q/party", [docent::node::Acl::read_all()], None).await.unwrap();
        let refused = Partitioner::new(&client, "/q", ["a"]).unwrap();
        let error = soon(refused.acquire()).await.unwrap_err();
        assert!(error.to_string().contains("permission denied"), "{error}");
    }
}
