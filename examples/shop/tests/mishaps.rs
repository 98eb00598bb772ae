//! Copies that crash, are suspended or drain, and servers that become unavailable, under a hundred requests
//! per second.

use crate::scene::{Scene, patiently, readiness, soon, until};
use docent_battery::{Backend, both_backends_in_real_time};
use docent_shop::fleet::Copy;
use docent_shop::stage::MOMENT;
use docent_shop::traffic::Report;
use std::time::Duration;
use tokio::time::sleep;

const COPIES: [&str; 3] = ["a", "b", "c"];

/// Asserts that at most one request in a hundred failed. Orders that waited too long or found the item sold
/// out do not count: a killed copy may hold the lock until its session expires, and no copy restocks
/// meanwhile.
#[track_caller]
fn one_in_a_hundred(report: &Report) {
    assert!(report.requests >= 50, "too few requests: {report}");
    let waited: usize = [409, 503].iter().filter_map(|status| report.failed_orders.get(status)).sum();
    assert!((report.failed() - waited) * 100 <= report.requests, "{report}");
}

/// Returns whether a copy has its second session, and is ready.
async fn is_ready_again(copy: &Copy) -> bool {
    let readiness = readiness(copy).await;
    readiness["servers"]["connection"]["generation"] == 2 && readiness["ready"] == true
}

both_backends_in_real_time! {
    async fn a_killed_copy_costs_callers_at_most_one_request_in_a_hundred(backend: Backend) {
        let scene = Scene::set(backend).await;
        let mut stage = scene.stage(&COPIES).await.under_traffic();
        let (moment, until_removed) = soon(stage.kill("a")).await.unwrap();
        one_in_a_hundred(&moment);
        one_in_a_hundred(&until_removed);
        assert!(!moment.by.contains_key("a"), "{moment}");
    }

    async fn a_copy_that_was_stopped_beyond_its_session_recovers(backend: Backend) {
        let scene = Scene::set(backend).await;
        let stage = scene.stage(&COPIES).await.under_traffic();
        let copy = stage.fleet.copy("b").unwrap();
        assert_eq!(readiness(copy).await["servers"]["connection"]["generation"], 1);
        let report = soon(stage.freeze("b")).await.unwrap();
        // An order may have to wait for the lock that the copy held when it was suspended.
        assert!(report.failed_reads * 100 <= report.requests, "{report}");
        until(async || is_ready_again(copy).await).await;
    }

    async fn a_restart_of_the_servers_costs_callers_no_request(backend: Backend) {
        let scene = Scene::set(backend).await;
        let stage = scene.stage(&COPIES).await.under_traffic();
        let restart = async {
            scene.server.stop().await;
            sleep(MOMENT).await;
            scene.server.start_again().await;
            for name in COPIES {
                stage.until_known(name).await.unwrap();
            }
        };
        let ((), report) = soon(stage.during(restart)).await;
        assert_eq!(report.failed_reads, 0, "{report}");
        assert!(report.failed_orders.keys().all(|status| *status == 503), "{report}");
    }

    async fn a_draining_copy_costs_callers_no_request(backend: Backend) {
        let scene = Scene::set(backend).await;
        let mut stage = scene.stage(&COPIES).await.under_traffic();
        let (last_line, report) = soon(stage.drain("c")).await.unwrap();
        assert_eq!(report.failed(), 0, "{report}");
        assert_eq!(last_line, "c has stopped, leaving nothing", "{}", scene.log("c"));
        assert!(report.requests >= 50, "{report}");
    }
}

#[tokio::test]
async fn a_copy_with_the_default_session_that_is_stopped_for_32_seconds_is_counted_and_bounded() {
    const STOPPED: Duration = Duration::from_secs(32);
    let scene = Scene::with_sessions(Backend::Embedded, Duration::from_secs(20)).await;
    let stage = scene.stage(&COPIES).await.under_traffic();
    let report = patiently(stage.freeze_for("b", STOPPED)).await.unwrap();
    // A hundred requests per second; a busy machine sends fewer.
    assert!(report.requests >= 500, "{report}");
    assert!(report.failed_reads * 100 <= report.requests, "{report}");
    // Orders may have to wait for the lock that the copy held when it was suspended, until its session
    // expires.
    assert!(report.failed_orders.keys().all(|status| [0, 409, 503].contains(status)), "{report}");
    assert!(report.failed() * 10 <= report.requests, "{report}");
    let copy = stage.fleet.copy("b").unwrap();
    until(async || is_ready_again(copy).await).await;
    let log = scene.log("b");
    assert!(log.contains("cause=\"the session expired while this process was paused or blocked\""), "{log}");
}
