//! `Counter` of Docent and kazoo, and `SharedCount`, in Curator's layout.

use crate::beside_kazoo;
use crate::client::both;
use docent::Counter;
use docent::config::{CounterError, SharedCount};
use docent_battery::Backend;
use docent_tests::soon;

beside_kazoo! {
    async fn concurrent_counts_of_both_add_up(backend: Backend) {
        const ROUNDS: i32 = 100;
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let (own, peer) = (
            Counter::<i32>::new(&client, "/counters/users").unwrap(),
            kazoo.make("counter /counters/users curator").await,
        );
        // The node that kazoo creates has no data yet.
        assert_eq!(peer.done("get").await, ["0"]);
        assert_eq!(soon(own.get()).await.unwrap(), 0);
        let peer_adds = peer.start(&format!("add-each -3 {ROUNDS}"));
        for _ in 0..ROUNDS {
            soon(own.add(258)).await.unwrap();
        }
        peer_adds.done().await;
        let sum = ROUNDS * 255;
        assert_eq!((soon(own.get()).await.unwrap(), peer.done("get").await), (sum, vec![sum.to_string()]));
        let other = kazoo.make("counter /counters/users curator").await;
        assert!(soon(own.compare_and_set(sum, i32::MIN)).await.unwrap());
        assert_eq!(other.done("add 258").await, [(i32::MIN + 258).to_string()]);
        assert_eq!(soon(own.get()).await.unwrap(), i32::MIN + 258);
    }

    async fn a_shared_count_is_that_of_a_counter(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let own = SharedCount::new(&client, "/counters/replicas", 3).unwrap();
        let mut seen = soon(own.subscribe()).await.unwrap();
        let peer = kazoo.make("counter /counters/replicas curator").await;
        assert_eq!(peer.done("add 255").await, ["258"]);
        soon(async { while **seen.current() != 258 { let _ = seen.changed().await.unwrap(); } }).await;
        soon(own.set(-1)).await.unwrap();
        assert_eq!(peer.done("add 1").await, ["0"]);
    }

    async fn a_counter_in_kazoos_own_layout_is_refused_and_unchanged(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let peer = kazoo.make("counter /counters/users").await;
        assert_eq!(peer.done("add 258").await, ["258"]);
        let own = Counter::<i32>::new(&client, "/counters/users").unwrap();
        assert!(matches!(soon(own.add(1)).await, Err(CounterError::Corrupted { .. })));
        assert_eq!(peer.done("get").await, ["258"]);
    }
}
