//! Payload decoders, filters and closures that panic or block. A view keeps running without the affected
//! instance, reports it, and no lock is lost.

use crate::scene::{orders, registry};
use docent::discovery::{Registration, ServiceChange};
use docent::{Client, Instance, Mutex, Service};
use docent_battery::{Backend, TestServer, both_backends_in_real_time};
use docent_tests::{SHORT_SESSION, builder, connect, soon, until};
use futures_util::StreamExt;
use serde::{Deserialize, Deserializer};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Payload at which hooks panic.
const POISON: &str = "poison";

/// Payload at which a filter is slow.
const SLOW: &str = "slow";

/// Text whose decoder panics at [`POISON`].
struct Fragile;

impl<'de> Deserialize<'de> for Fragile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| {
            assert_ne!(text, POISON, "planted");
            Self
        })
    }
}

fn not_poison(instance: &Instance<String>) -> bool {
    assert_ne!(instance.payload.as_deref(), Some(POISON), "planted");
    true
}

async fn announce(client: &Client, id: &str, payload: &str) -> Registration {
    soon(registry(client).register(orders(id).payload(payload.to_owned()))).await.unwrap()
}

/// Returns the ids of available instances, followed by those of unreadable instances with a `!`.
fn shown<P>(view: &Service<P>) -> Vec<String> {
    let instances = view.instances();
    let unreadable = instances.unreadable().map(|unreadable| format!("!{}", unreadable.id));
    instances.iter().map(|instance| instance.id.clone()).chain(unreadable).collect()
}

/// Waits until the view shows these ids. A stream does not report the removal of an unreadable instance.
async fn until_shown<P>(view: &Service<P>, expected: &[&str]) {
    until(async || shown(view) == expected).await;
}

/// Opens a view with one instance at which a hook panics, and then changes another instance in the same way.
async fn check_view_after_a_panic<P: Send + Sync + 'static>(
    other: &Client,
    open: impl Future<Output = Service<P>>,
    what: &str,
) {
    let bad = announce(other, "bad", POISON).await;
    let good = announce(other, "good", "").await;
    let view = soon(open).await;
    until_shown(&view, &["good", "!bad"]).await;
    let reason = view.instances().unreadable().next().unwrap().reason.clone();
    assert_eq!(reason, format!("the {what} panicked"));
    // The view is stale as long as the hook runs.
    until(async || !view.is_stale()).await;
    let mut changes = view.changes();
    let poisoned = orders("good").payload(POISON.to_owned());
    soon(good.update(poisoned)).await.unwrap();
    let unreadable_reason = soon(async {
        loop {
            if let Some(Ok(ServiceChange::Unreadable(unreadable))) = changes.next().await
                && unreadable.id == "good"
            {
                return unreadable.reason;
            }
        }
    });
    assert_eq!(unreadable_reason.await, reason);
    until_shown(&view, &["!bad", "!good"]).await;
    assert!(view.pick().is_err());
    // Later changes arrive.
    let _more = announce(other, "more", "").await;
    until_shown(&view, &["more", "!bad", "!good"]).await;
    soon(good.update(orders("good"))).await.unwrap();
    soon(bad.deregister()).await.unwrap();
    until_shown(&view, &["good", "more"]).await;
}

/// Returns true if a lock is held for as long as the filter of a live view blocks.
async fn lock_outlives_filter(server: &TestServer, dedicated: bool) -> bool {
    let settings = builder(server, server.connect_string()).session_timeout(SHORT_SESSION);
    let settings = if dedicated { settings.dedicated_thread() } else { settings };
    let (client, other) = (settings.connect().await.unwrap(), connect(server).await);
    let slow = registry(&client).service_builder::<String>("orders").filter(|instance| {
        if instance.payload.as_deref() == Some(SLOW) {
            std::thread::sleep(Duration::from_secs(3));
        }
        true
    });
    let view = soon(slow.open()).await.unwrap();
    let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
    let _slow = announce(&other, "1", SLOW).await;
    let mut was_stale = false;
    soon(async {
        while view.instances().is_empty() {
            was_stale |= view.is_stale();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let is_held = guard.is_held() && soon(guard.verify()).await.is_ok();
    assert!(!is_held || was_stale, "the view is stale while the filter runs");
    until(async || !view.is_stale()).await;
    soon(client.close()).await;
    is_held
}

/// Repeats the measurement, because a busy machine may starve a short session once.
async fn lock_outlives_filter_in_one_of_four_attempts(server: &TestServer, dedicated: bool) {
    for _ in 0..4 {
        if lock_outlives_filter(server, dedicated).await {
            return;
        }
    }
    panic!("the lock was lost in every attempt");
}

both_backends_in_real_time! {
    async fn a_panicking_decoder_affects_only_one_instance(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let open = async { registry(&client).typed_service::<Fragile>("orders").await.unwrap() };
        check_view_after_a_panic(&other, open, "decoder of payloads").await;
    }

    async fn a_panicking_filter_affects_only_one_instance(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let builder = registry(&client).service_builder::<String>("orders").filter(not_poison);
        check_view_after_a_panic(&other, async { builder.open().await.unwrap() }, "filter").await;
    }

    async fn a_closure_that_panics_in_a_pick_has_no_effect(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let _one = announce(&other, "1", "").await;
        let view = soon(registry(&client).typed_service::<String>("orders")).await.unwrap();
        let pick = || view.pick_where(|_| panic!("planted")).map(drop);
        assert!(catch_unwind(AssertUnwindSafe(pick)).is_err());
        assert_eq!(view.pick().unwrap().id, "1");
        let _two = announce(&other, "2", "").await;
        until_shown(&view, &["1", "2"]).await;
    }

    async fn a_filter_that_blocks_costs_no_lock(backend: Backend) {
        lock_outlives_filter_in_one_of_four_attempts(&backend.start().await, false).await;
    }

    async fn a_filter_that_blocks_costs_no_lock_of_a_dedicated_thread(backend: Backend) {
        lock_outlives_filter_in_one_of_four_attempts(&backend.start().await, true).await;
    }
}
