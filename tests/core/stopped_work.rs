//! The log of a leader's work that fails while it stops.

use crate::connect;
use crate::secrets::Printed;
use docent::{Election, Error};
use docent_battery::Backend;
use docent_tests::soon;
use tokio_util::sync::CancellationToken;

const FAILED: &str = "the leader's work failed while it stopped";

/// Stops a run that leads, whose work then ends with `result`. Returns the lines of the log about a failure.
async fn logged(result: Result<(), Error>) -> Vec<String> {
    let (printed, _logging) = Printed::from_here_on();
    let server = Backend::Memory.start().await;
    let election = Election::builder(&connect(&server).await, "/election").id("a").build().unwrap();
    let (stop, is_ok) = (CancellationToken::new(), result.is_ok());
    let run = election.run(|leadership| {
        let result = result.clone();
        stop.cancel();
        async move {
            leadership.token().cancelled().await;
            result
        }
    });
    assert_eq!(soon(run.until(stop.cancelled())).await.is_ok(), is_ok);
    printed.lines_with(FAILED)
}

#[tokio::test(start_paused = true)]
async fn work_that_fails_while_it_stops_is_logged_with_its_error() {
    let lines = logged(Err(Error::invalid_input("work", "the disk is full"))).await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    for part in [" WARN ", "path=", "fence=", "error=work: the disk is full"] {
        assert!(lines[0].contains(part), "{part}: {lines:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn work_that_stops_in_order_is_not_logged_as_failed() {
    assert!(logged(Ok(())).await.is_empty());
}
