//! The lease follows the timeout that the servers grant now, not the one they granted once.

use docent::{LostReason, Mutex};
use docent_testkit::{Backend, FrameKind, both_backends};
use docent_tests::{builder, connect, soon, within};
use std::time::Duration;

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
        let acquire = async { (next.acquire().await.unwrap(), guard.is_held()) };
        let lose = async {
            crate::order::until_waiting(&next, 2).await;
            proxy.set_longest_timeout(Some(SHORT));
            let before = proxy.trace().len();
            proxy.reset().await;
            // It is attached again, and has no chance to renew its lease.
            proxy.until(|trace| trace[before..].iter().filter(|frame| frame.kind == FrameKind::Connect).count() >= 2).await;
            proxy.blackhole();
            assert_eq!(guard.lost().await, LostReason::LeaseExpired);
        };
        // The server granted less: the next one need not wait for the end of a long session.
        let ((_granted, is_held), ()) = within(LONG / 2, async { tokio::join!(biased; acquire, lose) }).await;
        assert_eq!(client.session_id(), session, "it was attached to again");
        assert!(!is_held, "it says that it holds when the next one does");
        assert!(!guard.is_held());
    }
}
