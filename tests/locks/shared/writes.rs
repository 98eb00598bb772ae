//! Writes of a turn, and the ticket's hand-over to the next turn.

use super::{shared, waiters};
use crate::connect;
use crate::order::until_waiting;
use docent::locks::{SharedMutexGuard, TurnFence};
use docent::queue::AckError;
use docent::recipe::VersionedNode;
use docent::{CreateMode, ErrorKind, Lost, LostReason, Mutex, Queue};
use docent_battery::{Backend, Rule, both_backends};
use docent_proto::OpCode;
use docent_tests::soon;
use futures_util::poll;
use std::time::Duration;

both_backends! {
    /// Shows why a later transaction's number cannot serve as a fence.
    async fn a_write_to_the_ticket_is_younger_than_the_ticket_of_the_next_holder(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mutex = shared(&client, 3);
        let guard = soon(mutex.acquire()).await.unwrap();
        let peer = Mutex::new(&other, "/lock").unwrap();
        let waits = tokio::spawn(peer.acquire());
        until_waiting(&peer, 2).await;
        let next = waiters(&mutex, 1).await.remove(0);
        let first = guard.path();
        drop(guard);
        let second = soon(next).await.unwrap().unwrap();
        assert_eq!(second.path(), first);
        let written = client.set(&first, "x", None).await.unwrap();
        let younger = second.fence();
        drop(second);
        let peer = soon(waits).await.unwrap().unwrap();
        assert!(i64::from(peer.fence()) < written.mzxid, "the fence must not depend on that write");
        assert!(TurnFence::from(peer.fence()) > younger);
    }

    async fn a_transaction_of_an_ended_turn_is_refused(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = shared(&client, 9);
        let first = soon(mutex.acquire()).await.unwrap();
        let next = waiters(&mutex, 1).await.remove(0);
        let late = first.transaction().create("/late", "", CreateMode::Persistent);
        let done = first.transaction().create("/done", "", CreateMode::Persistent).commit();
        soon(done).await.unwrap();
        drop(first);
        let second = soon(next).await.unwrap().unwrap();
        assert_eq!(second.fence().turn(), 1, "an answered request must not keep the ticket");
        assert!(soon(late.commit()).await.unwrap_err().is_lost());
        soon(second.verify()).await.unwrap();
        assert_eq!(client.exists("/late").await.unwrap(), None);
    }

    async fn a_ticket_is_not_passed_on_while_a_write_of_a_turn_may_still_be_applied(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = shared(&client, 9);
        let first = soon(mutex.acquire()).await.unwrap();
        let next = waiters(&mutex, 1).await.remove(0);
        let mut commit = Box::pin(first.transaction().create("/late", "", CreateMode::Persistent).commit());
        assert!(poll!(commit.as_mut()).is_pending());
        drop(commit);
        let place = first.path();
        drop(first);
        let second = soon(next).await.unwrap().unwrap();
        assert!(second.path() != place && second.fence().turn() == 0);
    }

    async fn a_ticket_is_not_passed_on_while_a_node_that_a_turn_writes_may_still_change(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let (mutex, node) = (shared(&client, 9), VersionedNode::new(&client, "/value").unwrap());
        let (first, data) = (soon(mutex.acquire()).await.unwrap(), "x".into());
        let mut waiting = waiters(&mutex, 2).await;
        // The guard's transaction, which replaces the node's own, binds the write to the turn.
        let with = |guard: &SharedMutexGuard, path| guard.transaction().create(path, "", CreateMode::Persistent);
        soon(node.write(None, &data, |_| with(&first, "/done"))).await.unwrap();
        drop(first);
        let second = soon(waiting.remove(0)).await.unwrap().unwrap();
        assert_eq!(second.fence().turn(), 1, "an answered request must not keep the ticket");
        let mut write = Box::pin(node.write(None, &data, |_| with(&second, "/late")));
        assert!(poll!(write.as_mut()).is_pending());
        drop(write);
        let place = second.path();
        drop(second);
        let third = soon(waiting.remove(0)).await.unwrap().unwrap();
        assert!(third.path() != place && third.fence().turn() == 0);
    }

    async fn a_ticket_is_not_passed_on_after_the_write_of_a_node_whose_outcome_is_unknown(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await.with_operation_timeout(Duration::from_secs(1));
        let (mutex, node) = (shared(&client, 9), VersionedNode::new(&client, "/value").unwrap());
        let first = soon(mutex.acquire()).await.unwrap();
        let next = waiters(&mutex, 1).await.remove(0);
        let held = server.front().add(Rule::on(OpCode::Multi).hold());
        let late = || first.transaction().create("/late", "", CreateMode::Persistent);
        let unknown = soon(node.write(None, &"x".into(), |_| late())).await.unwrap_err();
        soon(held.fired()).await;
        assert_eq!(unknown.kind(), ErrorKind::OutcomeUnknown);
        let place = first.path();
        drop(first);
        server.front().heal().await.unwrap();
        let second = soon(next).await.unwrap().unwrap();
        assert!(second.path() != place && second.fence().turn() == 0);
    }

    async fn a_turns_transaction_combined_with_an_acknowledgement_is_refused_after_the_turn(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let (mutex, jobs) = (shared(&client, 9), Queue::<u64>::new(&client, "/jobs").unwrap());
        jobs.put_all(&[1, 2]).await.unwrap();
        let first = soon(mutex.acquire()).await.unwrap();
        let next = waiters(&mutex, 1).await.remove(0);
        let late = first.transaction().create("/late", "", CreateMode::Persistent);
        let done = first.transaction().create("/done", "", CreateMode::Persistent);
        soon(soon(jobs.take()).await.unwrap().ack_with(done)).await.unwrap();
        drop(first);
        let second = soon(next).await.unwrap().unwrap();
        assert_eq!(second.fence().turn(), 1, "an answered request must not keep the ticket");
        let refused = soon(soon(jobs.take()).await.unwrap().ack_with(late)).await.unwrap_err();
        assert!(matches!(refused, AckError::Lost(Lost { reason: LostReason::Released, .. })), "{refused:?}");
        soon(second.verify()).await.unwrap();
        assert_eq!(client.exists("/late").await.unwrap(), None);
        assert_eq!(*soon(jobs.take()).await.unwrap().item(), 2);
    }

    async fn a_ticket_is_not_passed_on_while_an_acknowledgement_of_a_turn_may_still_be_applied(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let (mutex, jobs) = (shared(&client, 9), Queue::<u64>::new(&client, "/jobs").unwrap());
        jobs.put(&1).await.unwrap();
        let first = soon(mutex.acquire()).await.unwrap();
        let next = waiters(&mutex, 1).await.remove(0);
        let delivery = soon(jobs.take()).await.unwrap();
        let late = first.transaction().create("/late", "", CreateMode::Persistent);
        let mut ack = Box::pin(delivery.ack_with(late));
        assert!(poll!(ack.as_mut()).is_pending());
        drop(ack);
        let place = first.path();
        drop(first);
        let second = soon(next).await.unwrap().unwrap();
        assert!(second.path() != place && second.fence().turn() == 0);
    }
}
