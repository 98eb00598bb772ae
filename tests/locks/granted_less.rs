//! A session that gets a smaller timeout when it is re-attached.

use crate::order::until_waiting;
use docent::{Client, LostReason, Mutex};
use docent_battery::{FrameKind, Proxy, TestServer, Traced};
use docent_tests::{connect, soon, within};
use std::time::Duration;

/// Session timeout that the client requests and gets at first.
pub(crate) const LONG: Duration = Duration::from_secs(20);
/// Session timeout that the client gets later.
pub(crate) const SHORT: Duration = Duration::from_secs(4);

/// Checks that the client behind `proxy` loses its guard before the next holder has the lock, and that the
/// next holder does not wait long.
pub(crate) async fn loses_its_guard_in_time(client: &Client, proxy: &Proxy, server: &TestServer) {
    let guard = soon(Mutex::new(client, "/lock").unwrap().acquire()).await.unwrap();
    let next = Mutex::new(&connect(server).await, "/lock").unwrap();
    let acquire = async { (next.acquire().await.unwrap(), guard.is_held()) };
    let lose = async {
        until_waiting(&next, 2).await;
        proxy.set_longest_timeout(Some(SHORT));
        let before = proxy.trace().len();
        proxy.reset().await;
        // The session is re-attached, and cannot renew its lease.
        let connects =
            |trace: &[Traced]| trace.iter().filter(|frame| frame.kind == FrameKind::Connect).count();
        proxy.until(|trace| connects(&trace[before..]) >= 2).await;
        proxy.blackhole();
        assert_eq!(guard.lost().await, LostReason::LeaseExpired);
    };
    // The server granted a smaller timeout, so the next holder need not wait for the end of a long session.
    let ((_granted, is_held), ()) = within(LONG / 2, async { tokio::join!(biased; acquire, lose) }).await;
    assert!(!is_held, "held together with the next holder");
    assert!(!guard.is_held());
}
