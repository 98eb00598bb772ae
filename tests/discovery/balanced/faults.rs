//! Copies in separate processes that are killed, stopped, drained or slow, at 200 requests per second.

use super::copies::Copy;
use super::load::send;
use super::scene::{Kind, caller, until_answered_by};
use crate::scene::{registry, until_ids};
use docent::discovery::{OutlierPolicy, PickPolicy};
use docent::{Client, Service};
use docent_battery::{Backend, both_backends_in_real_time};
use docent_tests::{connect, soon};
use std::time::Duration;
use tokio::time::sleep;

const SECOND: Duration = Duration::from_secs(1);

/// Longer than a healthy copy takes.
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
    let call = caller(&view, protocol, Kind::Safe, 10 * SECOND);
    let (before, ()) = send(&call, sleep(SECOND)).await;
    assert_eq!((before.failed().len(), before.answers().len()), (0, 3), "{before:?}");
    let (after, ()) = send(&call, async {
        a.kill();
        sleep(SECOND).await;
    })
    .await;
    assert_eq!(view.instances().len(), 3, "the instance is shown until its session expires");
    after.check();
    assert!(after.longer_than(LONG) * 100 <= after.ends.len());
    // Even requests that must not be repeated are sent to another copy, if no copy can have received them.
    let call = caller(&view, protocol, Kind::Unsafe, 10 * SECOND);
    until_answered_by(&call, "b").await;
    b.kill();
    b.ended().await;
    let (after, ()) = send(&call, sleep(SECOND)).await;
    after.check();
    assert_eq!(after.answers().into_keys().collect::<Vec<_>>(), ["c"]);
}

async fn drained(backend: Backend, protocol: &str) {
    let server = backend.start().await;
    let client = connect(&server).await;
    let [a, _b, _c] = Copy::three(&server, protocol).await;
    let view = view(&client, PickPolicy::default(), OutlierPolicy::default()).await;
    let call = caller(&view, protocol, Kind::Unsafe, 10 * SECOND);
    until_answered_by(&call, "a").await;
    let (requests, ()) = send(&call, a.drain()).await;
    // Before the view reports the drain, at most a few requests are sent to `a`.
    let from_other_copies = requests.answers().into_keys().filter(|id| *id != "a").count();
    assert_eq!((requests.failed().len(), from_other_copies), (0, 2), "{requests:?}");
    until_ids(&view, &["b", "c"]).await;
    let (after, ()) = send(&call, sleep(SECOND / 2)).await;
    assert_eq!((after.failed().len(), after.answers().len()), (0, 2), "{after:?}");
}

async fn stopped(backend: Backend, protocol: &str) {
    let server = backend.start().await;
    let client = connect(&server).await;
    let [a, _b, _c] = Copy::three(&server, protocol).await;
    let view = view(&client, PickPolicy::default(), OutlierPolicy::default().period(3 * SECOND)).await;
    let timeout = SECOND / 2;
    let call = caller(&view, protocol, Kind::Safe, timeout);
    until_answered_by(&call, "a").await;
    let (during, ()) = send(&call, async {
        a.freeze();
        sleep(5 * SECOND).await;
    })
    .await;
    during.check();
    // The slow requests are those sent to `a` before the first of them timed out, and one trial per
    // probation.
    let slow = during.longer_than(timeout);
    assert!(slow * 10 < during.ends.len(), "{slow} of {}", during.ends.len());
    a.thaw();
    soon(until_answered_by(&call, "a")).await;
}

async fn slow(backend: Backend, protocol: &str) {
    let server = backend.start().await;
    let client = connect(&server).await;
    let _copies = [
        Copy::start(&server, "a", protocol, 1000).await,
        Copy::start(&server, "b", protocol, 0).await,
        Copy::start(&server, "c", protocol, 0).await,
    ];
    // The picks depend on the requests in flight.
    let by_load = view(&client, PickPolicy::PowerOfTwo, OutlierPolicy::default()).await;
    let call = caller(&by_load, protocol, Kind::Unsafe, 10 * SECOND);
    let (requests, ()) = send(&call, sleep(2 * SECOND)).await;
    let of_slow = requests.answers()["a"];
    assert!(requests.failed().is_empty() && of_slow * 5 < requests.ends.len(), "{:?}", requests.answers());
    // The picks depend on the duration of attempts.
    let by_time = view(&client, PickPolicy::default(), OutlierPolicy::default()).await;
    let call = caller(&by_time, protocol, Kind::Safe, SECOND / 2);
    let (requests, ()) = send(&call, sleep(2 * SECOND)).await;
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

    async fn a_draining_copy_costs_http_no_request(backend: Backend) {
        drained(backend, "http").await;
    }

    async fn a_draining_copy_costs_grpc_no_request(backend: Backend) {
        drained(backend, "grpc").await;
    }

    async fn a_stopped_copy_is_set_aside_by_http_and_readmitted(backend: Backend) {
        stopped(backend, "http").await;
    }

    async fn a_stopped_copy_is_set_aside_by_grpc_and_readmitted(backend: Backend) {
        stopped(backend, "grpc").await;
    }

    async fn a_slow_copy_receives_fewer_requests_by_http(backend: Backend) {
        slow(backend, "http").await;
    }

    async fn a_slow_copy_receives_fewer_requests_by_grpc(backend: Backend) {
        slow(backend, "grpc").await;
    }
}
