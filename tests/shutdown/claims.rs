//! Claims of a queue that are in progress when their shutdown stage begins.

use docent::recipe::{Stage, stage_reached};
use docent::{Client, ConnectionState, Mutex, Queue};
use docent_battery::{Armed, Backend, Proxy, Rule, both_backends};
use docent_proto::OpCode;
use docent_tests::{PATIENCE, builder, connect, soon};
use futures_util::FutureExt;
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
