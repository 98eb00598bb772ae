//! `SharedValue`, `SharedCount` and `Counter`, and Curator's `SharedValue`, `SharedCount`,
//! `DistributedAtomicLong` and `DistributedAtomicInteger`.

use crate::curator::both;
use docent::config::{Change, PublishError, SharedCount};
use docent::{Counter, SharedValue};
use docent_battery::Backend;
use docent_tests::soon;

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn shared_values_and_numbers_of_either_are_followed_by_the_other() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let their_value = curator.make("value /shared/value theirs").await;
    let value = SharedValue::new(&client, "/shared/value", "ours").unwrap();
    assert_eq!(**soon(value.get()).await.unwrap(), *b"theirs", "the first initial value stays");
    let mut values = soon(value.subscribe()).await.unwrap();
    soon(value.set("one")).await.unwrap();
    their_value.done("until one").await;
    let seen = soon(value.get()).await.unwrap();
    their_value.done("set two").await;
    soon(async {
        while **values.current() != "two" {
            assert!(matches!(values.changed().await, Some(Ok(Change::Value(_)))));
        }
    })
    .await;
    assert!(matches!(soon(value.compare_and_set(&seen, "three")).await, Err(PublishError::Conflict)));
    their_value.done("set ").await;
    assert!(soon(value.get()).await.unwrap().is_empty());

    let count = SharedCount::new(&client, "/shared/count", 258).unwrap();
    assert_eq!(*soon(count.get()).await.unwrap().value(), 258);
    let their_count = curator.make("count /shared/count 7").await;
    assert_eq!(their_count.done("get").await, ["258"]);
    let mut counts = soon(count.subscribe()).await.unwrap();
    for number in [-1, i32::MIN, i32::MAX] {
        their_count.done(&format!("set {number}")).await;
        soon(async {
            while **counts.current() != number {
                assert!(matches!(counts.changed().await, Some(Ok(Change::Value(_)))));
            }
        })
        .await;
        let seen = soon(count.get()).await.unwrap();
        soon(count.compare_and_set(&seen, number / 2)).await.unwrap();
        their_count.done(&format!("until {}", number / 2)).await;
    }
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn counts_of_both_at_the_same_time_add_up() {
    const ROUNDS: i64 = 30;
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let own = Counter::<i64>::new(&client, "/counters/orders").unwrap();
    let peer = curator.make("long /counters/orders").await;
    assert_eq!(peer.done("add 5000000000").await, ["5000000000"]);
    assert_eq!(soon(own.get()).await.unwrap(), 5_000_000_000);
    let adding: Vec<_> = (0..ROUNDS).map(|_| peer.start("add 1")).collect();
    for _ in 0..ROUNDS {
        soon(own.subtract(3)).await.unwrap();
    }
    for added in adding {
        added.done().await;
    }
    let sum = 5_000_000_000 - 2 * ROUNDS;
    assert_eq!((soon(own.get()).await.unwrap(), peer.done("get").await), (sum, vec![sum.to_string()]));

    assert!(!soon(own.compare_and_set(0, 1)).await.unwrap());
    peer.refused("compare-and-set 0 1").await;
    assert!(soon(own.compare_and_set(sum, -1)).await.unwrap());
    assert_eq!(peer.done("compare-and-set -1 -258").await, ["-258"]);
    assert_eq!(soon(own.get()).await.unwrap(), -258);

    let (own, peer) =
        (Counter::<i32>::new(&client, "/counters/users").unwrap(), curator.make("int /counters/users").await);
    soon(own.add(i32::MIN)).await.unwrap();
    assert_eq!(peer.done("add 258").await, [(i32::MIN + 258).to_string()]);
    assert_eq!(soon(own.get()).await.unwrap(), i32::MIN + 258);
}
