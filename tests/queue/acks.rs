//! Transactions that are committed together with an acknowledgement.

use crate::jobs::{QUEUE, drain, queue, take};
use docent::queue::AckError;
use docent::{CreateMode, Delivery, ErrorKind, LostReason, Queue};
use docent_battery::{Backend, Rule, both_backends};
use docent_proto::{OpCode, Request};
use docent_tests::{connect, soon};

both_backends! {
    async fn effects_happen_with_the_acknowledgement_or_not_at_all(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = queue(&client);
        jobs.put_all(&[1, 2]).await.unwrap();
        client.create("/sum", "0", CreateMode::Persistent).await.unwrap();
        let first = take(&jobs).await;
        soon(first.ack_with(client.transaction().set("/sum", "1", 0))).await.unwrap();
        // An operation fails: the item is back in its place, and nothing was applied.
        let second = take(&jobs).await;
        let wrong = client.transaction().create("/done", "", CreateMode::Persistent).set("/sum", "3", 0);
        let error = soon(second.ack_with(wrong)).await.unwrap_err();
        let AckError::Core(error) = error else { panic!("{error:?}") };
        assert_eq!((error.kind(), error.path()), (ErrorKind::BadVersion, Some("/sum")));
        assert!(!error.may_have_applied() && client.exists("/done").await.unwrap().is_none());
        // The item's claim is deleted in the background.
        let second = soon(jobs.take()).await.unwrap();
        assert_eq!((*second.item(), second.deliveries()), (2, Some(2)));
        // The same with a guard's transaction, which has its own checks.
        let own = second.transaction().set("/sum", "3", 1);
        soon(second.ack_with(own)).await.unwrap();
        assert_eq!(client.get("/sum").await.unwrap().data, "3");
        assert!(jobs.is_empty().await.unwrap());
    }

    async fn effects_happen_once_although_the_reply_is_lost(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = docent_tests::builder(&server, proxy.connect_string()).connect().await.unwrap();
        let jobs = queue(&client);
        jobs.put(&1).await.unwrap();
        client.create("/log", "", CreateMode::Persistent).await.unwrap();
        let delivery = take(&jobs).await;
        let rule = proxy.add(Rule::on(OpCode::Multi).swallow_reply());
        let effect = client.transaction().create("/log/done-", "1", CreateMode::PersistentSequential);
        let ack = delivery.ack_with(effect);
        let breaking = async {
            rule.fired().await;
            proxy.reset().await;
        };
        soon(async { tokio::join!(ack, breaking) }).await.0.unwrap();
        assert_eq!(client.children("/log").await.unwrap().names.len(), 1);
        assert!(jobs.is_empty().await.unwrap());
    }

    async fn a_lost_claim_cannot_be_acknowledged_and_its_successor_is_unaffected(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (jobs, other) = (queue(&client), queue(&other));
        jobs.put(&1).await.unwrap();
        let lost = take(&jobs).await;
        let mut raw = server.client().await;
        let path = server.path(&lost.path()[1..]);
        raw.call(Request::Delete { path, version: -1 }).await.unwrap();
        assert_eq!(soon(lost.lost()).await, LostReason::NodeDeleted);
        let held = soon(other.take()).await.unwrap();
        assert_eq!(held.deliveries(), Some(2));
        let error = soon(lost.ack()).await.unwrap_err();
        assert!(matches!(error, AckError::Lost(lost) if lost.reason == LostReason::NodeDeleted), "{error:?}");
        assert!(held.verify().await.is_ok());
        soon(held.ack()).await.unwrap();
        assert_eq!(drain(&jobs).await, [0; 0]);
    }

    async fn an_item_given_back_over_a_broken_link_is_not_taken_from_its_next_consumer(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = docent_tests::builder(&server, proxy.connect_string()).connect().await.unwrap();
        let (jobs, other) = (queue(&client), queue(&connect(&server).await));
        jobs.put(&1).await.unwrap();
        let delivery = take(&jobs).await;
        // The delete arrives but its reply does not, and the link stays down until another consumer has the
        // item.
        let rule = proxy.add(Rule::on(OpCode::Multi).cut_after());
        let meanwhile = async {
            rule.fired().await;
            let held = other.take().await.unwrap();
            proxy.heal().await.unwrap();
            held
        };
        let (given_back, held) = soon(async { tokio::join!(delivery.nack_now(), meanwhile) }).await;
        given_back.unwrap();
        soon(held.verify()).await.unwrap();
        soon(held.ack()).await.unwrap();
    }

    async fn an_acknowledgement_dropped_on_a_broken_link_does_not_affect_a_later_item(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = docent_tests::builder(&server, proxy.connect_string()).connect().await.unwrap();
        let (jobs, other) = (queue(&client), queue(&connect(&server).await));
        jobs.put(&1).await.unwrap();
        let delivery = take(&jobs).await;
        let name = delivery.name().to_owned();
        let rule = proxy.add(Rule::on(OpCode::Multi).cut_after());
        tokio::select! {
            acked = delivery.ack() => panic!("a reply arrived: {acked:?}"),
            () = rule.fired() => {}
        }
        // The delete was applied. Once the queue is empty, its numbers start again, and the next item gets
        // the same name.
        soon(async {
            while !other.is_empty().await.unwrap() {
                docent_tests::pause().await;
            }
        }).await;
        other.reset().await.unwrap();
        other.put(&2).await.unwrap();
        let held = soon(other.take()).await.unwrap();
        assert_eq!(held.name(), name);
        proxy.heal().await.unwrap();
        soon(client.sync("/")).await.unwrap();
        soon(client.close()).await;
        soon(held.verify()).await.unwrap();
        soon(held.ack()).await.unwrap();
    }

    async fn an_item_that_is_deleted_while_claimed_is_a_loss(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = queue(&client);
        jobs.put_all(&[1, 2]).await.unwrap();
        let (first, second) = (take(&jobs).await, take(&jobs).await);
        let item = format!("{QUEUE}/items/{}", first.name());
        let proof = format!("{item}/{}", client.children(&item).await.unwrap().names[0]);
        let delete = client.transaction().delete(&first.path(), None).delete(&proof, None);
        delete.delete(&item, None).commit().await.unwrap();
        soon(first.lost()).await;
        assert!(soon(first.ack()).await.is_err());
        assert!(second.is_held());
        soon(second.ack()).await.unwrap();
    }

    async fn work_under_a_delivery_stops_when_it_is_lost(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = queue(&client);
        jobs.put(&1).await.unwrap();
        let delivery = take(&jobs).await;
        assert_eq!(soon(delivery.run(async { 7 })).await.unwrap(), 7);
        let token = delivery.token();
        let ending = async {
            server.expire(client.session_id().unwrap()).await.unwrap();
            std::future::pending::<()>().await;
        };
        let lost = soon(delivery.run(ending)).await.unwrap_err();
        assert_eq!(lost.reason, LostReason::SessionExpired);
        assert!(token.is_cancelled() && !delivery.is_held());
        let error = soon(delivery.nack_now()).await.unwrap_err();
        assert!(matches!(&error, AckError::Lost(lost) if lost.reason == LostReason::SessionExpired), "{error:?}");
        let again = soon(jobs.take()).await.unwrap();
        assert_eq!((*again.item(), again.deliveries()), (1, Some(2)));
    }

    async fn deliveries_of_different_clients_are_not_acknowledged_together(backend: Backend) {
        let server = backend.start().await;
        let in_namespace = |name: &str| {
            let builder = docent_tests::builder(&server, server.connect_string());
            builder.namespace(server.path(name)).connect()
        };
        let (here, there) = (in_namespace("here").await.unwrap(), in_namespace("there").await.unwrap());
        let is_refused = |result: Result<(), AckError>| {
            let error = result.unwrap_err();
            assert!(matches!(&error, AckError::Core(e) if e.kind() == ErrorKind::InvalidInput), "{error:?}");
        };
        let own: Queue<u64> = Queue::new(&here, QUEUE).unwrap();
        let foreign: Queue<u64> = Queue::new(&there, QUEUE).unwrap();
        let ordered: Queue<u64> = Queue::builder(&here, "/ordered").ordered().build().unwrap();
        for jobs in [&own, &foreign, &ordered] {
            jobs.put_all(&[1, 2]).await.unwrap();
        }
        // The second item of the other queue has the same name as an item of ours that no consumer works on.
        let (one, first) = (take(&own).await, take(&foreign).await);
        let second = take(&foreign).await;
        is_refused(soon(Delivery::ack_all(vec![one, second])).await);
        // The same holds for writes that are committed with an acknowledgement.
        let second = soon(foreign.take()).await.unwrap();
        assert_eq!(*second.item(), 2);
        is_refused(soon(second.ack_with(here.transaction().create("/a", "", CreateMode::Persistent))).await);
        let locked = take(&ordered).await;
        is_refused(soon(locked.ack_with(there.transaction().create("/b", "", CreateMode::Persistent))).await);
        drop(first);
        for jobs in [&own, &foreign, &ordered] {
            // Each item was given back at a different time and returns after a pause.
            let mut items = Vec::new();
            for _ in 0..2 {
                let delivery = soon(jobs.take()).await.unwrap();
                items.push(*delivery.item());
                soon(delivery.ack()).await.unwrap();
            }
            items.sort_unstable();
            assert_eq!(items, [1, 2]);
        }
        assert!(here.exists("/a").await.unwrap().is_none() && there.exists("/b").await.unwrap().is_none());
    }
}

#[test]
fn a_delivery_can_be_dropped_outside_of_a_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (server, client, delivery) = runtime.block_on(async {
        let server = Backend::Embedded.start().await;
        let client = connect(&server).await;
        let jobs = queue(&client);
        jobs.put(&1).await.unwrap();
        let delivery = take(&jobs).await;
        (server, client, delivery)
    });
    drop(delivery);
    runtime.block_on(async {
        let again = soon(queue(&client).take()).await.unwrap();
        assert_eq!(again.deliveries(), Some(2));
        soon(again.ack()).await.unwrap();
        soon(client.close()).await;
        drop(server);
    });
}
