//! A program that ends without closing its client.

use crate::secrets::Printed;
use crate::{builder, connect};
use docent::time::{Clock, Timestamp, TokioClock};
use docent::{Client, ConnectionState};
use docent_battery::Backend;
use docent_tests::soon;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::runtime::Builder;

/// Runs `program` with a connected client until it returns, and shuts its runtime down. Returns what was
/// logged at level WARN or above.
fn problems_of<F: Future<Output = ()>>(program: impl FnOnce(Client) -> F) -> Vec<String> {
    let (printed, _logging) = Printed::from_here_on();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let server = Backend::Embedded.start().await;
        program(connect(&server).await).await;
    });
    drop(runtime);
    let lines = printed.lines_with("docent");
    lines.into_iter().filter(|line| line.contains(" WARN ") || line.contains(" ERROR ")).collect()
}

#[test]
fn a_program_that_ends_without_a_close_is_told_to_close_and_logs_no_error() {
    for drops in [false, true] {
        let kept = std::sync::Mutex::new(None);
        let lines = problems_of(|client| async {
            match drops {
                true => drop(client),
                false => *kept.lock().unwrap() = Some(client),
            }
        });
        assert_eq!(lines.len(), 1, "{lines:#?}");
        assert!(lines[0].contains("WARN") && lines[0].contains("close().await"), "{lines:#?}");
    }
}

#[test]
fn a_program_that_closes_its_client_logs_no_warning() {
    let lines = problems_of(|client| async move { client.close().await });
    assert!(lines.is_empty(), "{lines:#?}");
}

#[test]
fn a_program_that_never_connected_logs_no_error() {
    let (printed, _logging) = Printed::from_here_on();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let client = runtime.block_on(async { Client::builder("127.0.0.1:1").build().unwrap() });
    drop(runtime);
    drop(client);
    let lines = printed.lines_with(" ERROR ");
    assert!(lines.is_empty(), "{lines:#?}");
}

/// A clock that panics when it is triggered.
#[derive(Debug, Clone, Default)]
struct Panics(Arc<AtomicBool>, TokioClock);

impl Clock for Panics {
    fn now(&self) -> Timestamp {
        assert!(!self.0.swap(false, Ordering::SeqCst), "the clock panics, as intended by this test");
        self.1.now()
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_session_task_is_an_error() {
    let (printed, _logging) = Printed::from_here_on();
    let (server, clock) = (Backend::Memory.start().await, Panics::default());
    let client = builder(&server, server.connect_string()).clock(clock.clone()).connect().await.unwrap();
    clock.0.store(true, Ordering::SeqCst);
    soon(client.state().reached(ConnectionState::Closed)).await;
    let lines = printed.lines_with("session task stopped unexpectedly");
    assert!(lines.len() == 1 && lines[0].contains("ERROR"), "{lines:#?}");
}
