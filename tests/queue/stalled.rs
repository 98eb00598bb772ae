//! A consumer whose process is stalled while its claim is deleted and the item is handed to another consumer.

use crate::jobs::QUEUE;
use docent::queue::{QueueBuilder, QueueLayout};
use docent::{Client, CreateMode, Delivery, Queue};
use docent_battery::{Backend, TestServer, both_backends_in_real_time};
use docent_tests::{Stalled, builder, connect, soon};
use futures_util::StreamExt;
use std::fmt::Debug;
use std::time::Duration;

const LOCKS: &str = "/locks";
const EFFECT: &str = "/effect";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    Native,
    Curator,
}

impl Layout {
    fn queue(self, client: &Client) -> QueueBuilder<u64> {
        let queue = Queue::builder(client, QUEUE).redelivery_delay(Duration::ZERO, Duration::ZERO);
        match self {
            Self::Native => queue,
            Self::Curator => queue.layout(QueueLayout::Curator { lock_path: LOCKS.to_owned() }),
        }
    }

    fn claims(self) -> String {
        match self {
            Self::Native => format!("{QUEUE}/claims"),
            Self::Curator => LOCKS.to_owned(),
        }
    }
}

/// How the stalled consumer got its item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    Alone,
    /// The item was claimed ahead of its hand-out, together with the previous one.
    Ahead,
}

/// First action of the stalled consumer when it resumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Ack,
    AckAll,
    AckWith,
    Write,
    WriteExactly,
    Reject,
    PutBack,
    NackNow,
    Nack,
    Drop,
    Verify,
}

/// Performs `act` and returns its error, if the operation reports one.
async fn act(act: Act, delivery: Delivery<u64>) -> Option<String> {
    fn failed<T>(result: Result<T, impl Debug>) -> String {
        result.err().map_or_else(|| "the operation succeeded".to_owned(), |error| format!("{error:?}"))
    }
    let effect = |transaction: docent::node::Transaction| transaction.set(EFFECT, "old", None);
    let error = match act {
        Act::Ack => failed(delivery.ack().await),
        Act::AckAll => failed(Delivery::ack_all(vec![delivery]).await),
        Act::AckWith => {
            let effects = effect(delivery.transaction());
            failed(delivery.ack_with(effects).await)
        }
        Act::Write => failed(effect(delivery.transaction()).commit().await),
        Act::WriteExactly => failed(effect(delivery.transaction()).commit_exactly().await),
        Act::Reject => failed(delivery.reject("stalled").await),
        Act::PutBack => failed(delivery.put_back(docent::queue::PutOptions::new()).await),
        Act::Verify => failed(delivery.verify().await),
        Act::NackNow => return delivery.nack_now().await.map_or_else(|_| None, |_| None),
        Act::Nack => return delivery.nack().map_or_else(|_| None, |()| None),
        Act::Drop => return None,
    };
    Some(error)
}

/// Starts a consumer that stalls with its item. The outcome is the result of its `act`.
async fn stalled(server: &TestServer, layout: Layout, taken: Taken, action: Act) -> Stalled<Option<String>> {
    let take = async move |client: &Client| {
        let jobs = layout.queue(client).prefetch(2).build().unwrap();
        match taken {
            Taken::Alone => jobs.take().await.unwrap(),
            Taken::Ahead => {
                let mut deliveries = jobs.deliveries();
                deliveries.next().await.unwrap().unwrap().ack().await.unwrap();
                deliveries.next().await.unwrap().unwrap()
            }
        }
    };
    let connecting = builder(server, server.connect_string());
    Stalled::after(connecting, take, async move |delivery| act(action, delivery).await).await
}

/// True for the error of an act whose delivery is lost: its write was refused, or had no reply yet.
fn is_lost(error: &str) -> bool {
    error.contains("Lost") || error.contains("kind: OutcomeUnknown")
}

/// Deletes the one claim by hand, as an operator does, and returns its path.
async fn revoke_claim(operator: &Client, layout: Layout) -> String {
    let claims = operator.children(&layout.claims()).await.unwrap().names;
    let claim = claims.into_iter().find(|name| !name.starts_with("docent-")).unwrap();
    let claim = format!("{}/{claim}", layout.claims());
    operator.delete(&claim, None).await.unwrap();
    claim
}

async fn a_stall(server: &TestServer, layout: Layout, taken: Taken, action: Act) {
    let case = format!("{layout:?}-{taken:?}-{action:?}");
    let other = connect(server).await;
    let jobs = layout.queue(&other).build().unwrap();
    other.create_or_set(EFFECT, "none", CreateMode::Persistent).await.unwrap();
    if taken == Taken::Ahead {
        jobs.put(&1).await.unwrap();
    }
    jobs.put(&2).await.unwrap();
    let consumer = stalled(server, layout, taken, action).await;
    revoke_claim(&other, layout).await;
    let next = soon(jobs.take()).await.unwrap();
    assert_eq!(*next.item(), 2, "{case}");
    let error = consumer.resume().await;
    assert!(error.as_deref().is_none_or(is_lost), "{case}: {error:?}");
    assert_eq!(other.get(EFFECT).await.unwrap().data[..], *b"none", "{case}");
    assert!(next.is_held(), "{case}");
    soon(next.verify()).await.unwrap_or_else(|error| panic!("{case}: {error}"));
    soon(next.transaction().set(EFFECT, "new", None).commit()).await.unwrap();
    soon(next.ack()).await.unwrap_or_else(|error| panic!("{case}: {error}"));
    assert!(jobs.is_empty().await.unwrap(), "{case}");
    assert_eq!(soon(jobs.dead_letters().len()).await.unwrap(), 0, "{case}");
    other.close().await;
}

async fn stalls(backend: Backend, layout: Layout) {
    use Act::{Ack, AckAll, AckWith, Drop, Nack, NackNow, PutBack, Reject, Verify, Write, WriteExactly};
    let server = backend.start().await;
    for taken in [Taken::Alone, Taken::Ahead] {
        for action in
            [Ack, AckAll, AckWith, Write, WriteExactly, Reject, PutBack, NackNow, Nack, Drop, Verify]
        {
            if layout == Layout::Curator && action == PutBack {
                continue;
            }
            a_stall(&server, layout, taken, action).await;
        }
    }
}

both_backends_in_real_time! {
    async fn a_stalled_consumer_does_not_affect_the_next_consumers_item(backend: Backend) {
        stalls(backend, Layout::Native).await;
    }

    async fn a_stalled_consumer_does_not_affect_the_next_consumers_item_in_curators_layout(backend: Backend) {
        stalls(backend, Layout::Curator).await;
    }

    async fn a_stalled_consumer_does_not_affect_the_item_of_a_curator_consumer(backend: Backend) {
        use Act::{Ack, AckAll, AckWith, Drop, Nack, NackNow, Reject, Verify, Write, WriteExactly};
        let server = backend.start().await;
        let other = connect(&server).await;
        let jobs = Layout::Curator.queue(&other).build().unwrap();
        other.create(EFFECT, "none", CreateMode::Persistent).await.unwrap();
        for action in [Ack, AckAll, AckWith, Write, WriteExactly, Reject, NackNow, Nack, Drop, Verify] {
            jobs.put(&2).await.unwrap();
            let consumer = stalled(&server, Layout::Curator, Taken::Alone, action).await;
            let lock = revoke_claim(&other, Layout::Curator).await;
            // The node that Curator creates before it hands an item to its consumer.
            other.create(&lock, "", CreateMode::Ephemeral).await.unwrap();
            let error = consumer.resume().await;
            assert!(error.as_deref().is_none_or(is_lost), "{action:?}: {error:?}");
            assert_eq!(other.get(EFFECT).await.unwrap().data[..], *b"none", "{action:?}");
            assert!(other.exists(&lock).await.unwrap().is_some(), "{action:?}");
            assert_eq!(jobs.len().await.unwrap(), 1, "{action:?}");
            other.delete(&lock, None).await.unwrap();
            soon(soon(jobs.take()).await.unwrap().ack()).await.unwrap();
        }
    }
}
