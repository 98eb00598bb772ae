//! The log of a leader: its work fails while it stops, or it loses its session.

use crate::connect;
use crate::secrets::Printed;
use docent::recipe::KeptNode;
use docent::{Election, Error};
use docent_battery::Backend;
use docent_tests::soon;
use std::sync::atomic::{AtomicUsize, Ordering};
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

#[tokio::test(start_paused = true)]
async fn a_lost_leadership_is_one_warning_and_the_next_one_follows_the_connection() {
    let (printed, _logging) = Printed::from_here_on();
    let server = Backend::Memory.start().await;
    let client = connect(&server).await;
    let node = KeptNode::new(&client, "/kept", "").unwrap();
    soon(node.present()).await.unwrap();
    let election = Election::builder(&client, "/election").id("a").build().unwrap();
    let stop = CancellationToken::new();
    let terms = AtomicUsize::new(0);
    let run = election.run(|_leadership| {
        let term = terms.fetch_add(1, Ordering::SeqCst);
        let (server, client, stop) = (&server, &client, &stop);
        async move {
            match term {
                0 => server.expire(client.session_id().unwrap()).await.unwrap(),
                _ => stop.cancel(),
            }
            std::future::pending::<Result<(), Error>>().await
        }
    });
    soon(run.until(stop.cancelled())).await.unwrap();
    let lines = printed.lines_with(" docent::");
    let at = |text: &str| lines.iter().rposition(|line| line.contains(text)).expect(text);
    for later in ["docent::node: node is present", "docent::election: leading"] {
        assert!(at("docent::client: connected") < at(later), "{later}: {lines:#?}");
    }
    let warnings: Vec<_> = lines.iter().filter(|line| line.contains(" WARN ")).collect();
    let about_leader = warnings.iter().filter(|line| line.contains("/election"));
    assert_eq!(about_leader.count(), 1, "{warnings:#?}");
}
