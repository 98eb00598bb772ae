//! The lease depends on the timeout that the servers grant now, not on an earlier one, and on the clock, not
//! on the replies that arrived.

use crate::granted_less::{LONG, loses_its_guard_in_time};
use docent::time::{BootClock, Clock, Timestamp};
use docent::{LostReason, MultiLock, Mutex};
use docent_battery::{Backend, both_backends};
use docent_tests::{SESSION, builder, soon};
use futures_util::poll;
use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

both_backends! {
    async fn work_is_not_polled_again_when_the_clock_jumped_past_the_lease(backend: Backend) {
        let server = backend.start().await;
        let clock = Jumps::default();
        let client = builder(&server, server.connect_string()).clock(clock.clone()).connect().await.unwrap();
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let guard = soon(mutex.acquire()).await.unwrap();
        let more = Mutex::new(&client, "/more").unwrap();
        let multi = MultiLock::new([&more, &Mutex::new(&client, "/most").unwrap()]).unwrap();
        let all = soon(multi.acquire()).await.unwrap();
        let polls = [Cell::new(0), Cell::new(0)];
        let mut work = pin!(guard.run(counted(&polls[0])));
        let mut more_work = pin!(all.run(counted(&polls[1])));
        for _ in 0..2 {
            assert!(poll!(work.as_mut()).is_pending() && poll!(more_work.as_mut()).is_pending());
        }
        // Nothing else runs before the next polls, so only the clock can end the lease.
        clock.jump(SESSION);
        for done in [poll!(work.as_mut()), poll!(more_work.as_mut())] {
            let Poll::Ready(Err(lost)) = done else { panic!("the work continues") };
            assert_eq!(lost.reason, LostReason::LeaseExpired);
        }
        assert_eq!(polls.each_ref().map(Cell::get), [2, 2]);
    }

    async fn a_session_granted_a_shorter_timeout_on_reconnect_loses_its_guards_in_time(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).session_timeout(LONG).connect().await.unwrap();
        let session = client.session_id();
        loses_its_guard_in_time(&client, &proxy, &server).await;
        assert_eq!(client.session_id(), session, "the session must be resumed");
    }
}

/// Work that never completes and counts its polls.
async fn counted(polls: &Cell<u32>) {
    poll_fn(|_| {
        polls.set(polls.get() + 1);
        Poll::<()>::Pending
    })
    .await;
}

/// A clock that can jump forward, as on a machine that was suspended.
#[derive(Debug, Clone, Default)]
struct Jumps(Arc<AtomicU64>);

impl Jumps {
    fn jump(&self, time: Duration) {
        self.0.fetch_add(time.as_millis() as u64, Ordering::SeqCst);
    }
}

impl Clock for Jumps {
    fn now(&self) -> Timestamp {
        BootClock.now() + Duration::from_millis(self.0.load(Ordering::SeqCst))
    }
}
