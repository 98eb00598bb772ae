//! Codecs and validations that panic or block. A live view keeps running, reports the failure, and no lock is
//! lost.

use crate::limits::{Limits, limits};
use crate::support::{PATH, config};
use bytes::Bytes;
use docent::config::{Change, Codec, CodecError, Json, RejectionReason, TreeChange};
use docent::{Client, Config, ConfigTree, Mutex, Subscription};
use docent_battery::{Backend, TestServer, both_backends_in_real_time};
use docent_tests::{SHORT_SESSION, builder, connect, soon, until};
use serde::{Deserialize, Serialize};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Value at which hooks panic.
const POISON: u32 = 13;

/// Value at which validation is slow.
const SLOW: u32 = 3;

/// Longer than a short session.
const LONG: Duration = Duration::from_secs(3);

/// JSON whose decoder panics at [`POISON`].
struct Fragile;

impl Codec<Limits> for Fragile {
    fn encode(&self, value: &Limits) -> Result<Bytes, CodecError> {
        Json::new().encode(value)
    }

    fn decode(&self, data: &Bytes) -> Result<Limits, CodecError> {
        Codec::<Limits>::decode(&Json::new(), data)
            .inspect(|limits| assert_ne!(limits.per_second, POISON, "planted"))
    }
}

fn not_poison(limits: &Limits) -> Result<(), String> {
    assert_ne!(limits.per_second, POISON, "planted");
    Ok(())
}

/// Returns the next change, abbreviated.
async fn next_change(subscription: &mut Subscription<Limits>) -> String {
    match soon(subscription.changed()).await {
        Some(Ok(Change::Value(snapshot))) => snapshot.per_second.to_string(),
        Some(Ok(Change::Refused(refusal))) => {
            assert_eq!(refusal.reason(), RejectionReason::Panicked);
            assert!(refusal.detail().contains("planted"), "{}", refusal.detail());
            refusal.to_string()
        }
        other => panic!("{other:?}"),
    }
}

/// Publishes the poison under a live subscription, and then a valid value.
async fn check_subscription_after_a_panic(hooked: Config<Limits>, other: &Client, what: &str) {
    let plain = config(other);
    soon(plain.publish(&limits(1))).await.unwrap();
    let mut subscription = soon(hooked.subscribe()).await.unwrap();
    soon(plain.publish(&limits(POISON))).await.unwrap();
    let refusal = next_change(&mut subscription).await;
    assert!(refusal.ends_with(&format!("the {what} panicked")), "{refusal}");
    assert_eq!((subscription.current().per_second, subscription.refused()), (1, 1));
    // The subscription is stale as long as the hook runs.
    until(async || !subscription.is_stale()).await;
    soon(plain.publish(&limits(2))).await.unwrap();
    assert_eq!(next_change(&mut subscription).await, "2");
    assert!(subscription.rejection().is_none());
}

/// Creates a folder with two keys, and sets one of them to the poison.
async fn check_tree_after_a_panic(hooked: ConfigTree<Limits>, other: &Client) {
    let plain = ConfigTree::<Limits>::new(other, hooked.path()).unwrap();
    for key in ["a", "b"] {
        soon(plain.key(key).unwrap().publish(&limits(1))).await.unwrap();
    }
    let mut subscription = soon(hooked.subscribe()).await.unwrap();
    let mut next_change = async || match soon(subscription.changed()).await {
        Some(Ok(TreeChange::Value(key, snapshot))) => format!("{key} {}", snapshot.per_second),
        Some(Ok(TreeChange::Refused(key, refusal))) => format!("{key} {:?}", refusal.reason()),
        other => panic!("{other:?}"),
    };
    for (key, value, expected) in [("a", POISON, "a Panicked"), ("b", 2, "b 2"), ("a", 3, "a 3")] {
        soon(plain.key(key).unwrap().publish(&limits(value))).await.unwrap();
        assert_eq!(next_change().await, expected);
    }
    assert_eq!(subscription.current().refused().len(), 0);
}

/// Returns true if a lock is held for as long as the validation of a live view blocks.
async fn lock_outlives_validation(server: &TestServer, dedicated: bool) -> bool {
    let settings = builder(server, server.connect_string()).session_timeout(SHORT_SESSION);
    let settings = if dedicated { settings.dedicated_thread() } else { settings };
    let (client, other) = (settings.connect().await.unwrap(), connect(server).await);
    let plain = config(&other);
    soon(plain.publish(&limits(1))).await.unwrap();
    let slow = Config::<Limits>::builder(&client, PATH).validate(|limits| {
        if limits.per_second == SLOW {
            std::thread::sleep(LONG);
        }
        Ok::<_, String>(())
    });
    let subscription = soon(slow.build().unwrap().subscribe()).await.unwrap();
    let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
    soon(plain.publish(&limits(SLOW))).await.unwrap();
    let mut was_stale = false;
    soon(async {
        while subscription.current().per_second != SLOW {
            was_stale |= subscription.is_stale();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let is_held = guard.is_held() && soon(guard.verify()).await.is_ok();
    assert!(!is_held || was_stale, "the view is stale while the validation runs");
    until(async || !subscription.is_stale()).await;
    soon(client.close()).await;
    is_held
}

/// Repeats the measurement, because a busy machine may starve a short session once.
async fn lock_outlives_validation_in_one_of_four_attempts(server: &TestServer, dedicated: bool) {
    for _ in 0..4 {
        if lock_outlives_validation(server, dedicated).await {
            return;
        }
    }
    panic!("the lock was lost in every attempt");
}

/// A number whose drop panics once at the poison, if it is armed.
#[derive(Serialize, Deserialize)]
struct Bomb(u32);

static ARMED: AtomicBool = AtomicBool::new(false);

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(self.0 != POISON || !ARMED.swap(false, Ordering::SeqCst), "planted");
    }
}

#[tokio::test]
async fn a_subscription_outlives_a_panic_in_the_drop_of_a_value() {
    let server = Backend::Embedded.start().await;
    let (client, other) = (connect(&server).await, connect(&server).await);
    let plain = Config::<Bomb>::new(&other, PATH).unwrap();
    soon(plain.publish(&Bomb(POISON))).await.unwrap();
    let mut subscription = soon(Config::<Bomb>::new(&client, PATH).unwrap().subscribe()).await.unwrap();
    ARMED.store(true, Ordering::SeqCst);
    for number in [1, 2] {
        soon(plain.publish(&Bomb(number))).await.unwrap();
        let Some(Ok(Change::Value(snapshot))) = soon(subscription.changed()).await else { panic!() };
        assert_eq!(snapshot.0, number);
    }
    assert!(!ARMED.load(Ordering::SeqCst), "the view dropped the value");
}

both_backends_in_real_time! {
    async fn a_subscription_reports_a_panic_of_the_decoder_and_continues(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let hooked = Config::builder_with(&client, PATH, Fragile).build().unwrap();
        check_subscription_after_a_panic(hooked, &other, "codec").await;
    }

    async fn a_subscription_reports_a_panic_of_validation_and_continues(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let hooked = Config::builder(&client, PATH).validate(not_poison).build().unwrap();
        check_subscription_after_a_panic(hooked, &other, "validation").await;
    }

    async fn a_tree_reports_a_panic_of_a_hook_at_a_key_and_continues(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let decoded = Config::builder_with(&client, "/config/decoded", Fragile).build_tree().unwrap();
        check_tree_after_a_panic(decoded, &other).await;
        let validated = Config::builder(&client, "/config/validated").validate(not_poison).build_tree().unwrap();
        check_tree_after_a_panic(validated, &other).await;
    }

    async fn a_closure_that_panics_in_an_update_has_no_effect(backend: Backend) {
        use futures_util::FutureExt;
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let config = config(&client);
        soon(config.publish(&limits(1))).await.unwrap();
        let update = AssertUnwindSafe(config.update(|_| panic!("planted"))).catch_unwind();
        assert!(soon(update).await.is_err());
        let raise = |now: Option<Limits>| now.map(|now| limits(now.per_second + 1));
        assert_eq!(soon(config.update(raise)).await.unwrap().unwrap().per_second, 2);
        assert_eq!(soon(crate::support::config(&other).update(raise)).await.unwrap().unwrap().per_second, 3);
    }

    async fn validation_that_blocks_costs_no_lock(backend: Backend) {
        lock_outlives_validation_in_one_of_four_attempts(&backend.start().await, false).await;
    }

    async fn validation_that_blocks_costs_no_lock_of_a_dedicated_thread(backend: Backend) {
        lock_outlives_validation_in_one_of_four_attempts(&backend.start().await, true).await;
    }
}
