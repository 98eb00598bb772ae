//! Operations that are bound to a delivery end when the delivery is lost, because the answer is certain then.

use crate::jobs::{queue, take};
use docent::queue::{AckError, PutOptions};
use docent::{Client, CreateMode, Delivery, LostReason, Mutex, Queue, Released};
use docent_battery::{Backend, TestServer, both_backends};
use docent_tests::bound::{WAITS, Waits, patient, until_lost};
use docent_tests::{connect, soon};
use futures_util::future::join_all;

/// An operation that a consumer awaits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Ack,
    AckWith,
    AckAndPut,
    AckAll,
    NackNow,
    Reject,
    /// Rejects an item when the folder of the dead letters must be created first.
    RejectFirst,
    PutBack,
    Commit,
    CommitExactly,
    Verify,
}

impl Operation {
    const ALL: [Self; 11] = [
        Self::Ack,
        Self::AckWith,
        Self::AckAndPut,
        Self::AckAll,
        Self::NackNow,
        Self::Reject,
        Self::RejectFirst,
        Self::PutBack,
        Self::Commit,
        Self::CommitExactly,
        Self::Verify,
    ];

    /// True for an operation whose first request changes something that other clients see.
    fn writes(self) -> bool {
        !matches!(self, Self::NackNow | Self::RejectFirst | Self::AckAndPut | Self::Verify)
    }

    /// Returns `Pending` if the operation gives the item back and has not ended.
    async fn run(
        self,
        client: Client,
        delivery: Delivery<u64>,
        other: Queue<u64>,
    ) -> Result<Released, AckError> {
        if self == Self::NackNow {
            return delivery.nack_now().await;
        }
        self.run_to_end(client, delivery, other).await.map(|()| Released::Done)
    }

    async fn run_to_end(
        self,
        client: Client,
        delivery: Delivery<u64>,
        other: Queue<u64>,
    ) -> Result<(), AckError> {
        let create =
            |transaction: docent::node::Transaction| transaction.create("/late", "", CreateMode::Persistent);
        match self {
            Self::Ack => delivery.ack().await,
            Self::AckWith => delivery.ack_with(create(client.transaction())).await,
            Self::AckAndPut => delivery.ack_and_put(&other, &2).await,
            Self::AckAll => Delivery::ack_all(vec![delivery]).await,
            Self::NackNow => delivery.nack_now().await.map(drop),
            Self::Reject | Self::RejectFirst => delivery.reject("bad").await,
            Self::PutBack => delivery.put_back(PutOptions::default()).await,
            Self::Commit => Ok(create(delivery.transaction()).commit().await.map(drop)?),
            Self::CommitExactly => Ok(create(delivery.transaction()).commit_exactly().await.map(drop)?),
            Self::Verify => Ok(delivery.verify().await?),
        }
    }
}

async fn operation_ends_with_its_delivery(server: &TestServer, operation: Operation, waits: Waits) {
    let (client, proxy) = patient(server).await;
    let (jobs, other) = (queue(&client), queue(&connect(server).await));
    let done = Queue::<u64>::new(&client, "/done").unwrap();
    jobs.put(&1).await.unwrap();
    done.put(&0).await.unwrap();
    if operation != Operation::RejectFirst {
        take(&jobs).await.reject("to have the folder of the dead letters").await.unwrap();
        jobs.put(&1).await.unwrap();
    }
    let delivery = take(&jobs).await;
    // A guard of the same session, with the same lease, shows when the lease ends.
    let witness = soon(Mutex::new(&client, "/witness").unwrap().acquire()).await.unwrap();
    waits.begin(&proxy).await;
    let run = operation.run(client.clone(), delivery, done.clone());
    let ended = until_lost(&client, waits, witness.lost(), run).await;
    let case = format!("{operation:?} {waits:?}: {ended:?}");
    match ended {
        Ok(released) => assert_eq!((operation, released), (Operation::NackNow, Released::Pending), "{case}"),
        Err(error) if waits == Waits::Unanswered && operation.writes() => {
            assert!(error.may_have_applied() && error.to_string().contains("the guard was lost"), "{case}");
            return;
        }
        Err(AckError::Lost(lost)) => assert_eq!(lost.reason, LostReason::LeaseExpired, "{case}"),
        Err(_) => panic!("{case}"),
    }
    proxy.heal().await.unwrap();
    // The item is handed out again, and nothing of the operation was or will be applied.
    let again = soon(other.take()).await.unwrap();
    assert_eq!((*again.item(), again.is_held()), (1, true), "{case}");
    assert!(client.exists("/late").await.unwrap().is_none(), "{case}");
    assert_eq!((done.len().await.unwrap(), jobs.len().await.unwrap()), (1, 1), "{case}");
    soon(again.ack()).await.unwrap();
}

both_backends! {
    async fn an_operation_bound_to_a_delivery_ends_when_the_delivery_is_lost(backend: Backend) {
        let cases = Operation::ALL.into_iter().flat_map(|operation| WAITS.map(|waits| (operation, waits)));
        // Each case runs in a separate tree.
        let run = async |(operation, waits)| {
            operation_ends_with_its_delivery(&backend.start().await, operation, waits).await;
        };
        join_all(cases.map(run)).await;
    }
}
