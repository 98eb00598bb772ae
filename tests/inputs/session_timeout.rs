//! A session timeout that is too short for locks, or that the servers change, is reported early and once.

use crate::log::Warnings;
use docent::client::ClientBuilder;
use docent::{Client, ErrorKind, Mutex};
use docent_battery::{Backend, TestServer};
use docent_tests::{builder, soon, until};
use std::time::Duration;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Returns the settings of a client with the label `shop`.
fn labelled(server: &TestServer, requested: Duration, tick: Duration) -> ClientBuilder {
    builder(server, server.connect_string()).label("shop").session_timeout(requested).server_tick(tick)
}

/// Connects, loses the link, and connects again. Returns the client.
async fn reconnected(server: &TestServer, settings: ClientBuilder) -> Client {
    let client = soon(settings.connect()).await.unwrap();
    server.front().reset().await;
    until(async || client.state().current().suspensions > 0 && client.exists("/").await.is_ok()).await;
    client
}

#[tokio::test(start_paused = true)]
async fn a_session_timeout_below_four_ticks_is_reported_when_the_client_is_built() {
    let (warnings, _capturing) = Warnings::capture();
    let client = Client::builder("127.0.0.1:1").label("shop").session_timeout(s(7)).build().unwrap();
    let rule = "shorter than four server ticks";
    assert_eq!(
        warnings.with(rule),
        ["WARN the session timeout is shorter than four server ticks; refusing locks unless the servers \
          grant more client=shop requested_seconds=7.0 tick_seconds=2.0"]
    );
    assert_eq!((client.health().session_timeout, client.health().refuses_locks), (None, None));
    Client::builder("127.0.0.1:1").session_timeout(s(7)).accept_short_lease().build().unwrap();
    Client::builder("127.0.0.1:1").session_timeout(s(8)).build().unwrap();
    assert_eq!(warnings.with(rule).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_granted_session_timeout_below_four_ticks_is_reported_once_and_in_the_health() {
    let server = Backend::Memory.start().await;
    let (warnings, _capturing) = Warnings::capture();
    // The server's limit is 20 of its own ticks, and this client assumes longer ticks.
    let granted = soon(labelled(&server, s(3_600), s(2)).connect()).await.unwrap().session_timeout().unwrap();
    let client = reconnected(&server, labelled(&server, s(3_600), granted / 2)).await;
    let lines = warnings.with("the granted session timeout is shorter than four server ticks");
    let [line] = &*lines else { panic!("{lines:?}") };
    assert!(line.contains("requested_seconds=3600.0") && line.contains("granted_seconds="), "{line}");

    let health = client.health();
    assert_eq!(health.session_timeout, Some(granted));
    let reason =
        format!("session timeout {granted:?} must be at least four server ticks of {:?}", granted / 2);
    assert_eq!(health.refuses_locks.as_ref(), Some(&reason));
    assert!(health.to_string().contains(&format!("refuses locks ({reason})")), "{health}");
    let error = soon(Mutex::new(&client, "/lock").unwrap().try_acquire()).await.unwrap_err();
    assert!(error.to_string().contains(&reason), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_session_timeout_that_the_servers_change_is_reported_once() {
    let server = Backend::Memory.start().await;
    let (warnings, _capturing) = Warnings::capture();
    let tick = docent_tests::tick();
    for (requested, text) in [
        (s(3_600), "the servers limited the session timeout to their maxSessionTimeout"),
        (Duration::from_millis(1), "the servers raised the session timeout to their minSessionTimeout"),
    ] {
        let settings = labelled(&server, requested, tick).accept_short_lease();
        let client = reconnected(&server, settings).await;
        let granted = client.session_timeout().unwrap();
        let line = format!(
            "WARN {text} client=shop requested_seconds={:?} granted_seconds={:?}",
            requested.as_secs_f64(),
            granted.as_secs_f64()
        );
        assert_eq!(warnings.with("SessionTimeout"), [line]);
        assert_eq!(client.health().session_timeout, Some(granted));
        soon(client.close()).await;
        warnings.clear();
    }
    soon(reconnected(&server, labelled(&server, s(2), tick))).await;
    assert_eq!(warnings.with("session timeout"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn locks_are_refused_for_the_reason_that_was_logged() {
    let server = Backend::Memory.start().await;
    let client = soon(labelled(&server, s(2), s(1)).connect()).await.unwrap();
    let error = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap_err();
    let docent::locks::AcquireError::Core(core) = &error else { panic!("{error}") };
    assert_eq!(core.kind(), ErrorKind::ShortLease);
    assert_eq!(
        error.to_string(),
        "acquire \"/lock\": session timeout is too short for a lease: session timeout 2s must be at least \
         four server ticks of 1s"
    );
}
