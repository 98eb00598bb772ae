//! Links that are lost while a session creates what its first writes need: the folder of claims, and that of
//! markers. Results are about the items, never about a folder.

use docent::queue::PutOptions;
use docent::{Client, Queue};
use docent_battery::{Backend, Proxy, Rule, TestServer, both_backends};
use docent_proto::OpCode;
use docent_tests::{builder, connect, soon};
use futures_util::future::join_all;

/// Requests at which the link is lost, after or before the server applies them.
#[derive(Debug, Clone, Copy)]
struct Losses {
    /// Number of the first lost request among the requests of its kind.
    first: usize,
    /// Number of lost requests.
    count: usize,
    applied: bool,
}

fn all_losses() -> Vec<Losses> {
    let mut all = Vec::new();
    for first in 1..=4 {
        for count in 1..=4 {
            all.extend([false, true].map(|applied| Losses { first, count, applied }));
        }
    }
    all
}

fn lose(proxy: &Proxy, Losses { first, count, applied }: Losses) {
    for number in first..first + count {
        // Each rule counts separately, from the moment it is added.
        let on = Rule::on_any().when(|request| is_create(request.op())).nth(number);
        proxy.add(if applied { on.reset_after() } else { on.reset_before() });
    }
}

fn is_create(op: OpCode) -> bool {
    matches!(op, OpCode::Create | OpCode::Create2 | OpCode::CreateContainer)
}

/// Returns a client that has written nothing yet, a queue of that client with three items, and its proxy.
async fn fresh(server: &TestServer, case: &str) -> (Client, Queue<u64>, Proxy) {
    let namespace = server.path(case);
    let producer = builder(server, server.connect_string()).namespace(&namespace).connect().await.unwrap();
    let queue = Queue::new(&producer, "/jobs").unwrap();
    soon(queue.put_all(&[1, 2, 3])).await.unwrap();
    // The producer's markers are deleted with its session. Their folder may remain or be deleted, as any
    // empty container.
    soon(producer.close()).await;
    let cleaner = connect(server).await;
    let _ = soon(cleaner.delete_all(&format!("/{case}/_docent"))).await;
    soon(cleaner.close()).await;
    let proxy = server.proxy().await;
    let client = builder(server, proxy.connect_string()).namespace(&namespace).connect().await.unwrap();
    let queue = Queue::new(&client, "/jobs").unwrap();
    (client, queue, proxy)
}

both_backends! {
    async fn a_purge_deletes_all_items_although_links_are_lost_while_folders_are_created(backend: Backend) {
        let server = backend.start().await;
        let cases = all_losses().into_iter().enumerate().map(|(number, losses)| {
            let server = &server;
            async move {
                let (client, queue, proxy) = fresh(server, &format!("case-{number}")).await;
                lose(&proxy, losses);
                assert_eq!(soon(queue.purge()).await.unwrap(), 3, "{losses:?}");
                assert_eq!(soon(queue.len()).await.unwrap(), 0, "{losses:?}");
                soon(client.close()).await;
            }
        });
        join_all(cases).await;
    }

    async fn an_item_is_moved_although_links_are_lost_while_folders_are_created(backend: Backend) {
        let server = backend.start().await;
        let cases = all_losses().into_iter().enumerate().map(|(number, losses)| {
            let server = &server;
            async move {
                let (client, queue, proxy) = fresh(server, &format!("case-{number}")).await;
                let first = soon(queue.list()).await.unwrap().remove(0);
                lose(&proxy, losses);
                let moved = soon(queue.reschedule(&first.name, PutOptions::new().priority(5))).await;
                assert!(moved.unwrap(), "{losses:?}");
                soon(client.close()).await;
            }
        });
        join_all(cases).await;
    }

    async fn letters_are_requeued_and_deleted_although_links_are_lost_while_folders_are_created(backend: Backend) {
        let server = backend.start().await;
        let cases = all_losses().into_iter().enumerate().map(|(number, losses)| {
            let server = &server;
            async move {
                let (client, _, _proxy) = fresh(server, &format!("case-{number}")).await;
                let queue: Queue<u64> = Queue::new(&client, "/jobs").unwrap();
                soon(soon(queue.take()).await.unwrap().reject("no")).await.unwrap();
                soon(soon(queue.take()).await.unwrap().reject("no")).await.unwrap();
                soon(client.close()).await;
                let cleaner = connect(server).await;
                let _ = soon(cleaner.delete_all(&format!("/case-{number}/_docent"))).await;
                let proxy = server.proxy().await;
                let settings = builder(server, proxy.connect_string()).namespace(server.path(&format!("case-{number}")));
                let client = settings.connect().await.unwrap();
                let queue: Queue<u64> = Queue::new(&client, "/jobs").unwrap();
                let letters = queue.dead_letters();
                let listed = soon(letters.list()).await.unwrap();
                lose(&proxy, losses);
                soon(letters.requeue(&listed[0])).await.unwrap();
                assert_eq!(soon(letters.purge()).await.unwrap(), 1, "{losses:?}");
                assert_eq!(soon(queue.len()).await.unwrap(), 2, "{losses:?}");
                soon(client.close()).await;
            }
        });
        join_all(cases).await;
    }
}
