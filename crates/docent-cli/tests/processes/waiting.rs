//! Waits that a signal ends.

use crate::process::PATIENCE;
use crate::run::{Run, servers};
use docent::{Client, Mutex};
use docent_battery::{Backend, both_backends_in_real_time};
use docent_testkit::eventually;
use rustix::process::Signal;

/// Waits until this many contenders hold `/a` or wait for it.
async fn until_in_line(client: &Client, expected: usize) {
    let lock = Mutex::new(client, "/a").unwrap();
    let count = async || lock.participants().await.unwrap().len();
    eventually(PATIENCE, count, |count| *count == expected).await.unwrap();
}

both_backends_in_real_time! {
    async fn ctrl_c_is_not_ignored_while_waiting_and_leaves_no_node(backend: Backend) {
        let server = backend.start().await;
        let client = Client::connect(servers(&server)).await.unwrap();
        let guard = Mutex::new(&client, "/a").unwrap().acquire().await.unwrap();
        for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2] {
            let waiter = Run::start(&servers(&server), ["lock", "/a", "--", "echo", "held"]);
            until_in_line(&client, 2).await;
            waiter.signal(signal);
            let ended = waiter.end().await;
            assert_eq!((ended.code, ended.stdout.len()), (128 + signal.as_raw(), 0), "{ended:?}");
            // The node was deleted before the process ended.
            assert_eq!(Mutex::new(&client, "/a").unwrap().participants().await.unwrap().len(), 1);
        }
        guard.release().await.unwrap();
        client.close().await;
    }

    async fn the_next_waiter_acquires_the_lock_when_the_command_ends(backend: Backend) {
        let server = backend.start().await;
        let client = Client::connect(servers(&server)).await.unwrap();
        let mut first = Run::start(&servers(&server), ["lock", "/a", "--", "sh", "-c", "echo first; sleep 0.3"]);
        assert_eq!(first.line().await, "first");
        let second = Run::start(&servers(&server), ["lock", "/a", "--", "echo", "second"]);
        until_in_line(&client, 2).await;
        assert_eq!(second.end().await.stdout, ["second"]);
        assert_eq!(first.end().await.code, 0);
        client.close().await;
    }
}
