//! The lease follows the timeout that the servers grant now, not the one they granted once.

use docent::{LostReason, Mutex};
use docent_testkit::{Backend, FrameKind, both_backends};
use docent_tests::{builder, connect, soon};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_secs(4);

both_backends! {
    async fn a_session_granted_less_when_it_is_attached_again_loses_its_guards_in_time(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).session_timeout(LONG).connect().await.unwrap();
        let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        let (next, session) = (connect(&server).await, client.session_id());
        let next = Mutex::new(&next, "/lock").unwrap();
        let acquire = async { (next.acquire().await.unwrap(), Instant::now()) };
        let lose = async {
            crate::order::until_waiting(&next, 2).await;
            proxy.set_longest_timeout(Some(SHORT));
            let before = proxy.trace().len();
            proxy.reset().await;
            // It is attached again, and has no chance to renew its lease.
            proxy.until(|trace| trace[before..].iter().filter(|frame| frame.kind == FrameKind::Connect).count() >= 2).await;
            proxy.blackhole();
            let cut = Instant::now();
            assert_eq!(guard.lost().await, LostReason::LeaseExpired);
            (cut, Instant::now())
        };
        let ((_granted, granted_at), (cut, lost_at)) = soon(async { tokio::join!(biased; acquire, lose) }).await;
        assert_eq!(client.session_id(), session, "it was attached to again");
        assert!(lost_at < granted_at, "the next one was granted the lock {:?} before", lost_at - granted_at);
        assert!(granted_at - cut < LONG / 2, "the server granted less: {:?}", granted_at - cut);
        assert!(!guard.is_held());
    }
}
