//! Copies in processes of their own that are killed, stopped, drained or slow, under 200 requests a second.

use super::copies::Copy;
use super::load::send;
use super::scene::{Kind, asker, until_answered_by};
use crate::scene::{registry, until_ids};
use docent::discovery::{OutlierPolicy, PickPolicy};
use docent::{Client, Service};
use docent_battery::{Backend, both_backends_in_real_time};
use docent_tests::{connect, soon};
use std::time::Duration;
use tokio::time::sleep;

const SECOND: Duration = Duration::from_secs(1);

/// Longer than a sound copy takes.
const LONG: Duration = SECOND;

async fn view(client: &Client, policy: PickPolicy, outlier_policy: OutlierPolicy) -> Service<String> {
    let builder = registry(client).service_builder("orders").policy(policy).outlier_policy(outlier_policy);
    soon(builder.open()).await.unwrap()
}

async fn killed(backend: Backend, protocol: &str) {
    let server = backend.start().await;
    let client = connect(&server).await;
    let [mut a, mut b, _c] = Copy::three(&server, protocol).await;
    let view = view(&client, PickPolicy::default(), OutlierPolicy::default()).await;
    let ask = asker(&view, protocol, Kind::Safe, 10 * SECOND);
    let (before, ()) = send(&ask, sleep(SECOND)).await;
    assert_eq!((before.failed().len(), before.answers().len()), (0, 3), "{before:?}");
    let (after, ()) = send(&ask, async {
        a.kill();
        sleep(SECOND).await;
    })
    .await;
    assert_eq!(view.instances().len(), 3, "it is shown until its session expires");
    after.check();
    assert!(after.longer_than(LONG) * 100 <= after.ends.len());
    // Requests that must not be done twice go to another copy, too, once nobody can have taken them.
    let ask = asker(&view, protocol, Kind::Unsafe, 10 * SECOND);
    until_answered_by(&ask, "b").await;
    b.kill();
    b.ended().await;
    let (after, ()) = send(&ask, sleep(SECOND)).await;
    after.check();
    assert_eq!(after.answers().into_keys().collect::<Vec<_>>(), ["c"]);
}

async fn drained(backend: Backend, protocol: &str) {
    let server = backend.start().await;
    let client = connect(&server).await;
    let [a, _b, _c] = Copy::three(&server, protocol).await;
    let view = view(&client, PickPolicy::default(), OutlierPolicy::default()).await;
    let ask = asker(&view, protocol, Kind::Unsafe, 10 * SECOND);
    until_answered_by(&ask, "a").await;
    let (requests, ()) = send(&ask, a.drain()).await;
    // Few go to it before the view knows, or none.
    let others = requests.answers().into_keys().filter(|id| *id != "a").count();
    assert_eq!((requests.failed().len(), others), (0, 2), "{requests:?}");
    until_ids(&view, &["b", "c"]).await;
    let (after, ()) = send(&ask, sleep(SECOND / 2)).await;
    assert_eq!((after.failed().len(), after.answers().len()), (0, 2), "{after:?}");
}

async fn stopped(backend: Backend, protocol: &str) {
    let server = backend.start().await;
    let client = connect(&server).await;
    let [a, _b, _c] = Copy::three(&server, protocol).await;
    let view = view(&client, PickPolicy::default(), OutlierPolicy::default().period(3 * SECOND)).await;
    let timeout = SECOND / 2;
    let ask = asker(&view, protocol, Kind::Safe, timeout);
    until_answered_by(&ask, "a").await;
    let (during, ()) = send(&ask, async {
        a.freeze();
        sleep(5 * SECOND).await;
    })
    .await;
    during.check();
    // Those that went to it before the first of them ran out of time, and a trial for each probation.
    let slow = during.longer_than(timeout);
    assert!(slow * 10 < during.ends.len(), "{slow} of {}", during.ends.len());
    a.thaw();
    soon(until_answered_by(&ask, "a")).await;
}

async fn slow(backend: Backend, protocol: &str) {
    let server = backend.start().await;
    let client = connect(&server).await;
    let _copies = [
        Copy::start(&server, "a", protocol, 1000).await,
        Copy::start(&server, "b", protocol, 0).await,
        Copy::start(&server, "c", protocol, 0).await,
    ];
    // By what is in flight.
    let by_load = view(&client, PickPolicy::PowerOfTwo, OutlierPolicy::default()).await;
    let ask = asker(&by_load, protocol, Kind::Unsafe, 10 * SECOND);
    let (requests, ()) = send(&ask, sleep(2 * SECOND)).await;
    let of_slow = requests.answers()["a"];
    assert!(requests.failed().is_empty() && of_slow * 5 < requests.ends.len(), "{:?}", requests.answers());
    // By the time that an attempt takes.
    let by_time = view(&client, PickPolicy::default(), OutlierPolicy::default()).await;
    let ask = asker(&by_time, protocol, Kind::Safe, SECOND / 2);
    let (requests, ()) = send(&ask, sleep(2 * SECOND)).await;
    requests.check();
    assert!(!requests.answers().contains_key("a"), "{:?}", requests.answers());
    assert!(requests.longer_than(SECOND / 2) * 4 < requests.ends.len());
}

both_backends_in_real_time! {
    async fn a_copy_that_is_killed_costs_http_one_request_in_a_hundred_at_most(backend: Backend) {
        killed(backend, "http").await;
    }

    async fn a_copy_that_is_killed_costs_grpc_one_request_in_a_hundred_at_most(backend: Backend) {
        killed(backend, "grpc").await;
    }

    async fn a_copy_that_drains_costs_http_nothing(backend: Backend) {
        drained(backend, "http").await;
    }

    async fn a_copy_that_drains_costs_grpc_nothing(backend: Backend) {
        drained(backend, "grpc").await;
    }

    async fn a_copy_that_stands_still_is_set_aside_by_http_and_comes_back(backend: Backend) {
        stopped(backend, "http").await;
    }

    async fn a_copy_that_stands_still_is_set_aside_by_grpc_and_comes_back(backend: Backend) {
        stopped(backend, "grpc").await;
    }

    async fn a_slow_copy_gets_less_by_http(backend: Backend) {
        slow(backend, "http").await;
    }

    async fn a_slow_copy_gets_less_by_grpc(backend: Backend) {
        slow(backend, "grpc").await;
    }
}
