//! Batches, dead letters and the other ways to hold an item, over a link that breaks at any request.

use crate::jobs::QUEUE;
use bytes::Bytes;
use docent::queue::{QueueBuilder, QueueLayout, Raw};
use docent::{Delivery, Queue};
use docent_battery::{Backend, Rule, TestServer, both_backends};
use docent_tests::{builder, soon, until};
use futures_util::future::join_all;
use std::time::Duration;

const LOCKS: &str = "/locks";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Native,
    Ordered,
    Curator,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Break {
    ReplyLost,
    Before,
    After,
}

fn queue<T: 'static>(builder: QueueBuilder<T>, mode: Mode) -> Queue<T> {
    let builder = builder.redelivery_delay(Duration::ZERO, Duration::ZERO).undecodable_after(Duration::ZERO);
    let builder = match mode {
        Mode::Native => builder,
        Mode::Ordered => builder.ordered(),
        Mode::Curator => builder.layout(QueueLayout::Curator { lock_path: LOCKS.to_owned() }),
    };
    builder.build().unwrap()
}

/// Takes three items and one that cannot be decoded, in batches if the mode has them. Gives the first ones
/// back and acknowledges all.
async fn work(jobs: &Queue<u64>) -> Vec<u64> {
    for delivery in jobs.take_batch(4).await.unwrap() {
        delivery.nack_now().await.unwrap();
    }
    let mut acked = Vec::new();
    while acked.len() < 3 {
        let batch = jobs.take_batch(4).await.unwrap();
        acked.extend(batch.iter().map(|delivery| *delivery.item()));
        Delivery::ack_all(batch).await.unwrap();
    }
    // The item that cannot be decoded is dead-lettered in the background.
    until(async || jobs.is_empty().await.unwrap()).await;
    acked
}

/// Runs the work while the link breaks at the request `nth`. Returns false if the work has fewer requests.
async fn work_broken(server: &TestServer, mode: Mode, fault: Break, nth: usize) -> bool {
    let case = format!("{mode:?}-{fault:?}-{nth}");
    let proxy = server.proxy().await;
    let with_link = |link: String| builder(server, link).namespace(server.path(&case)).connect();
    let (judge, client) = (with_link(server.connect_string()), with_link(proxy.connect_string()));
    let (judge, client) = (judge.await.unwrap(), client.await.unwrap());
    let raw = queue(Queue::<Bytes>::builder_with(&judge, QUEUE, Raw), mode);
    raw.put_all(&["1", "x", "2", "3"].map(|item| Bytes::from_static(item.as_bytes()))).await.unwrap();
    let on = Rule::on_any().nth(nth);
    let rule = proxy.add(match fault {
        Break::ReplyLost => on.swallow_reply(),
        Break::Before => on.reset_before(),
        Break::After => on.reset_after(),
    });
    let breaking = async {
        rule.fired().await;
        if fault == Break::ReplyLost {
            proxy.reset().await;
        }
        std::future::pending::<()>().await;
    };
    let jobs = queue(Queue::builder(&client, QUEUE), mode);
    let mut acked = tokio::select! {
        acked = soon(work(&jobs)) => acked,
        () = breaking => Vec::new(),
    };
    soon(client.close()).await;
    if mode != Mode::Ordered {
        acked.sort_unstable();
    }
    assert_eq!(acked, [1, 2, 3], "{case}");
    assert!(raw.is_empty().await.unwrap(), "{case}");
    assert_eq!(raw.dead_letters().len().await.unwrap(), 1, "{case}");
    let locks = judge.children(LOCKS).await.map_or_else(|_| Vec::new(), |locks| locks.names);
    assert!(!locks.iter().any(|name| name.starts_with("queue-")), "{case}: {locks:?}");
    rule.has_fired()
}

/// Runs the work once for each of its requests, with the link broken at that request; several runs in
/// parallel.
async fn break_all(backend: Backend, mode: Mode) {
    const AT_ONCE: usize = 8;
    let server = backend.start().await;
    for fault in [Break::ReplyLost, Break::Before, Break::After] {
        for from in (1..).step_by(AT_ONCE) {
            let cases = (from..from + AT_ONCE).map(|nth| work_broken(&server, mode, fault, nth));
            if !join_all(cases).await.contains(&true) {
                assert!(from > AT_ONCE, "expected more requests to break");
                break;
            }
        }
    }
}

both_backends! {
    async fn a_link_that_breaks_at_any_request_leaves_batches_whole_and_one_dead_letter(backend: Backend) {
        break_all(backend, Mode::Native).await;
    }

    async fn a_link_that_breaks_at_any_request_leaves_the_order_of_one_at_a_time(backend: Backend) {
        break_all(backend, Mode::Ordered).await;
    }

    async fn a_link_that_breaks_at_any_request_leaves_no_lock_of_curators_layout(backend: Backend) {
        break_all(backend, Mode::Curator).await;
    }
}
