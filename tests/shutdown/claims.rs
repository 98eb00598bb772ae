//! Claims of a queue that are in progress when their shutdown stage begins.

use docent::recipe::{Stage, stage_reached};
use docent::{Client, ConnectionState, Error, ErrorKind, Instance, Mutex, Queue, Registry};
use docent_battery::{Armed, Backend, Proxy, Rule, both_backends};
use docent_proto::OpCode;
use docent_tests::{PATIENCE, builder, connect, soon};
use futures_util::{FutureExt, StreamExt};
use std::time::Duration;
use tokio::time::timeout;

/// Long enough for a shutdown that does not wait to reach its next stage.
const A_WHILE: Duration = Duration::from_millis(500);

fn jobs(client: &Client) -> Queue<String> {
    Queue::new(client, "/jobs").unwrap()
}

/// Puts an item into a queue, and thereby creates all folders.
async fn one_item(client: &Client) {
    let jobs = jobs(client);
    soon(jobs.put(&"before".to_owned())).await.unwrap();
    soon(soon(jobs.take()).await.unwrap().ack()).await.unwrap();
    soon(jobs.put(&"one".to_owned())).await.unwrap();
}

/// Holds back the next claim.
fn hold_claim(proxy: &Proxy) -> Armed {
    proxy.add(Rule::on(OpCode::Multi).path(|path| path.contains("/jobs/claims/")).hold())
}

both_backends! {
    async fn no_item_is_handed_out_from_the_start_of_the_shutdown(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let registry = Registry::builder(&client, "/services").drain(PATIENCE * 100).build().unwrap();
        let _web = soon(registry.register(Instance::new("web", "h", 1))).await.unwrap();
        let jobs = jobs(&client);
        let (mut deliveries, waiting) = (jobs.deliveries(), tokio::spawn(jobs.take()));
        let ordered = Queue::<String>::builder(&client, "/ordered").ordered().build().unwrap();
        let waiting_in_order = tokio::spawn(ordered.take());
        // All items but the first are kept for the next polls.
        soon(jobs.put_all(&["one", "two", "three"].map(str::to_owned))).await.unwrap();
        let one = soon(waiting).await.unwrap().unwrap();
        let two = soon(deliveries.next()).await.unwrap().unwrap();
        let shutdown = tokio::spawn(client.shutdown(PATIENCE * 200));
        soon(stage_reached(&client, Stage::Drain)).await;
        let closed = |taken: Result<_, Error>| assert_eq!(taken.map(drop).unwrap_err().kind(), ErrorKind::Closed);
        closed(soon(jobs.take()).await);
        closed(soon(waiting_in_order).await.unwrap());
        assert!(soon(deliveries.next()).await.is_none());
        soon(one.ack()).await.unwrap();
        soon(two.ack()).await.unwrap();
        assert!(stage_reached(&client, Stage::Deregister).now_or_never().is_none(), "the drain still lasts");
        soon(client.shutdown(Duration::ZERO)).await;
        soon(shutdown).await.unwrap();
    }

    async fn a_claim_in_progress_is_waited_for_and_its_hand_out_is_not(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy) = (connect(&server).await, server.proxy().await);
        // While the claim is held back, the link counts as alive.
        let client = builder(&server, proxy.connect_string()).session_timeout(PATIENCE * 2).connect().await.unwrap();
        one_item(&other).await;
        let claim = hold_claim(&proxy);
        let taking = tokio::spawn(jobs(&client).take());
        soon(claim.fired()).await;
        // A part of this time is longer than the test waits. The earlier stages have nothing to end, and take
        // no time.
        let mut shutdown = tokio::spawn(client.shutdown(PATIENCE * 10));
        soon(stage_reached(&client, Stage::Deliveries)).await;
        assert!(timeout(A_WHILE, &mut shutdown).await.is_err(), "the shutdown waits for the reply to the claim");
        assert!(stage_reached(&client, Stage::Locks).now_or_never().is_none(), "the next stage has not begun");
        proxy.heal().await.unwrap();
        let report = soon(shutdown).await.unwrap();
        assert!(report.is_clean(), "{report}");
        assert!(soon(taking).await.unwrap().is_err());
        let again = soon(jobs(&other).take()).await.unwrap();
        assert_eq!(again.deliveries(), Some(1), "the item was never delivered before");
    }

    async fn a_delivery_that_is_acknowledged_in_its_stage_does_not_delay_the_shutdown(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = jobs(&client);
        soon(jobs.put_all(&["one".to_owned(), "two".to_owned()])).await.unwrap();
        let [one, two] = [soon(jobs.take()).await.unwrap(), soon(jobs.take()).await.unwrap()];
        let shutdown = tokio::spawn(client.shutdown(PATIENCE * 10));
        soon(stage_reached(&client, Stage::Deliveries)).await;
        // The last listing had several items and is used up, so another take would request a new listing.
        soon(one.ack()).await.unwrap();
        soon(two.ack()).await.unwrap();
        let report = soon(shutdown).await.unwrap();
        assert!(report.is_clean(), "{report}");
    }

    async fn a_claim_that_an_outage_delays_does_not_delay_the_next_stage(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy) = (connect(&server).await, server.proxy().await);
        let client = builder(&server, proxy.connect_string()).session_timeout(PATIENCE * 2).connect().await.unwrap();
        let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        one_item(&other).await;
        let claim = hold_claim(&proxy);
        let _taking = tokio::spawn(jobs(&client).take());
        soon(claim.fired()).await;
        proxy.cut().await;
        client.state().reached(ConnectionState::Suspended).await;
        // A part of this time is longer than the test waits.
        let shutdown = tokio::spawn(client.shutdown(PATIENCE * 10));
        soon(guard.revoked()).await;
        drop(guard);
        let report = soon(client.shutdown(Duration::ZERO)).await;
        assert!(report.held_on.is_empty(), "{report}");
        soon(shutdown).await.unwrap();
    }
}
