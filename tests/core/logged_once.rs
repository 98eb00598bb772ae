//! Messages that are logged only once.

use crate::secrets::Printed;
use crate::{builder, connect};
use docent::locks::{DoubleBarrier, TimedLease};
use docent::{CreateMode, Mutex};
use docent_battery::{Backend, both_backends};
use docent_tests::soon;
use std::time::Duration;

both_backends! {
    async fn foreign_children_are_logged_once_for_each_line(backend: Backend) {
        let (printed, _logging) = Printed::from_here_on();
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        for line in ["/a", "/b"] {
            for name in ["foreign-1", "foreign-2"] {
                other.create(&format!("{line}/{name}"), "", CreateMode::Persistent).await.unwrap();
            }
            let mutex = Mutex::new(&client, line).unwrap();
            for _ in 0..3 {
                soon(soon(mutex.acquire()).await.unwrap().release()).await.unwrap();
            }
        }
        let lines = printed.lines_with("not contenders");
        assert_eq!(lines.len(), 2, "{lines:#?}");
        assert!(lines[0].contains("WARN") && lines[0].contains("foreign-"), "{}", lines[0]);
    }

    async fn a_timed_lease_logs_no_warning_about_its_own_node(backend: Backend) {
        let (printed, _logging) = Printed::from_here_on();
        let server = backend.start().await;
        let client = connect(&server).await;
        let lease = TimedLease::new(&client, "/lease", Duration::from_secs(3600)).unwrap();
        for lease in [lease.clone(), lease.slots(2)] {
            for _ in 0..2 {
                assert!(soon(lease.try_obtain()).await.unwrap().is_some());
            }
            assert!(soon(lease.give_back()).await.unwrap());
        }
        let lines = printed.lines_with("not contenders");
        assert!(lines.is_empty(), "{lines:#?}");
    }

    async fn rounds_of_a_double_barrier_are_logged_at_debug_level(backend: Backend) {
        let (printed, _logging) = Printed::from_here_on();
        let server = backend.start().await;
        let client = connect(&server).await;
        let barrier = DoubleBarrier::new(&client, "/barrier", 1).unwrap();
        for _ in 0..2 {
            soon(soon(barrier.enter()).await.unwrap().leave()).await.unwrap();
        }
        for text in ["node is present", "node is removed"] {
            let lines = printed.lines_with(text);
            assert!(lines.len() == 2 && lines.iter().all(|line| line.contains(" DEBUG ")), "{lines:#?}");
        }
    }

    async fn a_lost_guard_is_reported_once_however_often_it_is_checked(backend: Backend) {
        let (printed, _logging) = Printed::from_here_on();
        let server = backend.start().await;
        let client = builder(&server, server.connect_string()).connect().await.unwrap();
        let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        client.delete(&guard.path(), None).await.unwrap();
        soon(guard.lost()).await;
        assert!(!guard.is_held() && soon(guard.verify()).await.is_err());
        drop(guard);
        soon(client.close()).await;
        assert_eq!(printed.lines_with("guard is lost").len(), 1);
    }
}

/// Runs in a separate process, because the message is logged once per process.
#[test]
fn an_open_access_control_list_is_logged_once() {
    const ALONE: &str = "DOCENT_TEST_OPEN_NODES";
    if std::env::var_os(ALONE).is_none() {
        let test = "logged_once::an_open_access_control_list_is_logged_once";
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture"])
            .env(ALONE, "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    let (printed, _logging) = Printed::from_here_on();
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let server = Backend::Embedded.start().await;
        for name in ["a", "b"] {
            let client = connect(&server).await;
            client.create(&format!("/{name}"), "", CreateMode::Persistent).await.unwrap();
        }
    });
    let lines = printed.lines_with("nodes are created with an open access control list");
    assert_eq!(lines.len(), 1, "{lines:#?}");
}
