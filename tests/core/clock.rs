//! A client's clock compared with the servers' clock.

use crate::{builder, connect};
use docent::time::{BootClock, Clock, Timestamp};
use docent_battery::{Backend, both_backends};
use docent_tests::{own_nodes, soon, until};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const PERIOD: Duration = Duration::from_secs(1);

/// A clock that can be stopped, as by a hypervisor that pauses the machine.
#[derive(Debug, Clone, Default)]
struct Stops(Arc<AtomicU64>);

impl Stops {
    fn stop(&self) {
        self.0.store(BootClock.now().as_nanos(), Ordering::SeqCst);
    }
}

impl Clock for Stops {
    fn now(&self) -> Timestamp {
        match self.0.load(Ordering::SeqCst) {
            0 => BootClock.now(),
            stopped => Timestamp::from_nanos(stopped),
        }
    }
}

both_backends! {
    async fn a_clock_that_stopped_is_detected_by_the_servers_times_and_no_other_is(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let check = soon(client.check_clock(PERIOD)).await.unwrap();
        assert!(check.local + check.uncertainty >= PERIOD, "{check:?}");
        assert!(check.behind() < PERIOD / 10, "{check:?}");

        let clock = Stops::default();
        let paused = builder(&server, server.connect_string()).clock(clock.clone()).connect().await.unwrap();
        clock.stop();
        let check = soon(paused.check_clock(PERIOD)).await.unwrap();
        assert!(check.behind() > PERIOD / 2, "{check:?}");
        // Nothing of the check remains, except one marker per session.
        until(async || own_nodes(&client).await.len() == 2).await;
    }
}
