//! `Counter` of both, and `SharedCount`, with the numbers of Curator's layout.

use crate::beside_kazoo;
use crate::client::both;
use docent::Counter;
use docent::config::{CounterError, SharedCount};
use docent_battery::Backend;
use docent_tests::soon;

beside_kazoo! {
    async fn counts_of_both_at_once_add_up(backend: Backend) {
        const ROUNDS: i32 = 100;
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let (ours, theirs) = (
            Counter::<i32>::new(&client, "/counters/users").unwrap(),
            kazoo.make("counter /counters/users curator").await,
        );
        // The node that it makes has no data yet.
        assert_eq!(theirs.done("get").await, ["0"]);
        assert_eq!(soon(ours.get()).await.unwrap(), 0);
        let theirs_adds = theirs.tell(&format!("add-each -3 {ROUNDS}"));
        for _ in 0..ROUNDS {
            soon(ours.add(258)).await.unwrap();
        }
        theirs_adds.done().await;
        let sum = ROUNDS * 255;
        assert_eq!((soon(ours.get()).await.unwrap(), theirs.done("get").await), (sum, vec![sum.to_string()]));
        let other = kazoo.make("counter /counters/users curator").await;
        assert!(soon(ours.compare_and_set(sum, i32::MIN)).await.unwrap());
        assert_eq!(other.done("add 258").await, [(i32::MIN + 258).to_string()]);
        assert_eq!(soon(ours.get()).await.unwrap(), i32::MIN + 258);
    }

    async fn a_shared_count_is_that_of_a_counter(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let ours = SharedCount::new(&client, "/counters/replicas", 3).unwrap();
        let mut seen = soon(ours.subscribe()).await.unwrap();
        let theirs = kazoo.make("counter /counters/replicas curator").await;
        assert_eq!(theirs.done("add 255").await, ["258"]);
        soon(async { while **seen.current() != 258 { let _ = seen.changed().await.unwrap(); } }).await;
        soon(ours.set(-1)).await.unwrap();
        assert_eq!(theirs.done("add 1").await, ["0"]);
    }

    async fn a_counter_in_kazoos_own_layout_is_no_number_of_ours_and_stays_as_it_is(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let theirs = kazoo.make("counter /counters/users").await;
        assert_eq!(theirs.done("add 258").await, ["258"]);
        let ours = Counter::<i32>::new(&client, "/counters/users").unwrap();
        assert!(matches!(soon(ours.add(1)).await, Err(CounterError::Corrupted { .. })));
        assert_eq!(theirs.done("get").await, ["258"]);
    }
}
