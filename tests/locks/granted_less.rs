//! A session that is granted less when it is attached again.

use crate::order::until_waiting;
use docent::{Client, LostReason, Mutex};
use docent_battery::{FrameKind, Proxy, TestServer, Traced};
use docent_tests::{connect, soon, within};
use std::time::Duration;

/// Session timeout that the client asks for, and is granted at first.
pub(crate) const LONG: Duration = Duration::from_secs(20);
/// Session timeout that it is granted later.
pub(crate) const SHORT: Duration = Duration::from_secs(4);

/// Checks that a client that goes through `proxy` loses its guard before the next one holds the lock, and
/// that this is soon.
pub(crate) async fn loses_its_guard_in_time(client: &Client, proxy: &Proxy, server: &TestServer) {
    let guard = soon(Mutex::new(client, "/lock").unwrap().acquire()).await.unwrap();
    let next = Mutex::new(&connect(server).await, "/lock").unwrap();
    let acquire = async { (next.acquire().await.unwrap(), guard.is_held()) };
    let lose = async {
        until_waiting(&next, 2).await;
        proxy.set_longest_timeout(Some(SHORT));
        let before = proxy.trace().len();
        proxy.reset().await;
        // It is attached again, and has no chance to renew its lease.
        let connects =
            |trace: &[Traced]| trace.iter().filter(|frame| frame.kind == FrameKind::Connect).count();
        proxy.until(|trace| connects(&trace[before..]) >= 2).await;
        proxy.blackhole();
        assert_eq!(guard.lost().await, LostReason::LeaseExpired);
    };
    // The server granted less: the next one need not wait for the end of a long session.
    let ((_granted, is_held), ()) = within(LONG / 2, async { tokio::join!(biased; acquire, lose) }).await;
    assert!(!is_held, "it says that it holds when the next one does");
    assert!(!guard.is_held());
}
