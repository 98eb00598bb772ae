//! `Mutex` and `Lock`, each configured to recognize the other.

use crate::beside_kazoo;
use crate::client::{IDENTITY, Kazoo, both, connect, expire};
use docent::locks::AcquireError;
use docent::{Client, LostReason, Mutex};
use docent_battery::Backend;
use docent_tests::{in_time, soon, tick, until};
use std::time::{Duration, Instant};

const PATH: &str = "/locks/report";
const LOCK: &str = "lock /locks/report theirs lock-";

fn mutex(client: &Client) -> Mutex {
    Mutex::builder(client, PATH).neighbours("__lock__").build().unwrap()
}

/// Waits until the line has `count` contenders.
async fn until_waiting(mutex: &Mutex, count: usize) {
    until(async || mutex.participants().await.unwrap().len() >= count).await;
}

beside_kazoo! {
    async fn a_mutex_and_kazoos_lock_exclude_each_other_and_hand_over_both_ways(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let (own, peer, other) = (mutex(&client), kazoo.make(LOCK).await, kazoo.make(LOCK).await);

        let guard = soon(own.acquire()).await.unwrap();
        peer.refused("try").await;
        let waiting = peer.start("acquire");
        kazoo.until_it_waits_for(&guard.path()).await;
        assert!(!waiting.is_finished());
        assert_eq!(other.done("contenders").await, [IDENTITY, "theirs"]);
        let line = soon(own.participants()).await.unwrap();
        assert!(line[0].holds && line[0].fence == guard.fence() && !line[1].holds);
        assert_eq!(line[1].identity, "theirs");
        soon(guard.release()).await.unwrap();
        waiting.done().await;

        assert!(matches!(soon(own.try_acquire()).await, Err(AcquireError::Busy(_))));
        let waiting = tokio::spawn(own.acquire());
        until_waiting(&own, 2).await;
        assert!(!waiting.is_finished());
        assert_eq!(other.done("contenders").await, ["theirs", IDENTITY]);
        peer.done("release").await;
        let guard = soon(waiting).await.unwrap().unwrap();
        assert!(guard.fence() > line[1].fence);
        other.refused("try").await;
    }

    async fn a_line_of_docent_and_kazoo_clients_is_served_in_order_of_arrival(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let own = mutex(&client);
        let first = soon(own.acquire()).await.unwrap();
        let mut line = Vec::new();
        for pair in 0..3 {
            let peer = kazoo.make(LOCK).await;
            let peer_turn = peer.start("acquire");
            until_waiting(&own, 2 * pair + 2).await;
            let own_turn = tokio::spawn(own.acquire());
            until_waiting(&own, 2 * pair + 3).await;
            line.push((peer, peer_turn, own_turn));
        }
        soon(first.release()).await.unwrap();
        let last = kazoo.make(LOCK).await;
        for (peer, peer_turn, own_turn) in line {
            peer_turn.done().await;
            assert!(!own_turn.is_finished());
            peer.done("release").await;
            let guard = soon(own_turn).await.unwrap().unwrap();
            last.refused("try").await;
            soon(guard.release()).await.unwrap();
        }
    }

    async fn kazoos_lock_keeps_working_after_its_line_was_empty_with_persistent_parents(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let peer = kazoo.make(LOCK).await;
        soon(soon(mutex(&client).acquire()).await.unwrap().release()).await.unwrap();
        peer.done("acquire").await;
        peer.done("release").await;
        // When this container is deleted, the servers have also checked all containers that were empty
        // earlier.
        let other = docent_tests::connect(&server).await;
        soon(soon(Mutex::new(&other, "/containers/lock").unwrap().acquire()).await.unwrap().release()).await.unwrap();
        until(async || other.exists("/containers/lock").await.unwrap().is_none()).await;
        peer.done("acquire").await;
    }

    async fn either_client_gets_the_lock_when_the_session_of_the_other_ends(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let (own, peer) = (mutex(&client), kazoo.make(LOCK).await);
        peer.done("acquire").await;
        let waiting = tokio::spawn(own.acquire());
        until_waiting(&own, 2).await;
        kazoo.expire().await;
        let guard = soon(waiting).await.unwrap().unwrap();

        let (kazoo, watching) = (Kazoo::start(&server).await, mutex(&connect(&server).await));
        let peer = kazoo.make(LOCK).await;
        let waiting = peer.start("acquire");
        kazoo.until_it_waits_for(&guard.path()).await;
        assert!(!waiting.is_finished());
        expire(&server, &client).await;
        waiting.done().await;
        assert_eq!(soon(guard.lost()).await, LostReason::SessionExpired);
        assert!(matches!(soon(watching.try_acquire()).await, Err(AcquireError::Busy(_))));
    }

    async fn docent_gets_the_lock_of_a_killed_kazoo_when_its_session_has_expired(backend: Backend) {
        const TIMEOUT: Duration = Duration::from_secs(4);
        let server = backend.start().await;
        let mutex = mutex(&connect(&server).await);
        in_time(TIMEOUT + 4 * tick(), async || {
            let mut kazoo = Kazoo::start_with(&server, TIMEOUT).await;
            kazoo.make(LOCK).await.done("acquire").await;
            let waiting = tokio::spawn(mutex.acquire());
            until_waiting(&mutex, 2).await;
            let killed = Instant::now();
            kazoo.kill();
            let guard = soon(waiting).await.unwrap().unwrap();
            let took = killed.elapsed();
            soon(guard.release()).await.unwrap();
            // The client sends a heartbeat at every third of the timeout.
            assert!(took > TIMEOUT / 2, "{took:?}");
            took
        })
        .await;
    }
}
