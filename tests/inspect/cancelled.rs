//! Futures and streams leave nothing at the server if they are dropped at any point.

use docent::inspect::{Inspector, Kind};
use docent::{Client, CreateMode};
use docent_battery::battery::abandon_at;
use docent_battery::{Backend, TestServer, both_backends};
use docent_tests::{connect, own_nodes, soon, until};
use futures_util::StreamExt;

/// Upper bound on the polls of any call.
const MOST_POLLS: usize = 200;

/// Creates a tree with a queue and a value.
async fn fill(client: &Client) {
    let fill = [("/v", "7"), ("/jobs", ""), ("/jobs/qn-0000000000", "job"), ("/app", ""), ("/app/locks", "")];
    let create = client.transaction();
    let create =
        fill.iter().fold(create, |create, (path, data)| create.create(path, *data, CreateMode::Persistent));
    soon(create.commit()).await.unwrap();
}

/// Waits until the server has no watches, and no markers except that of the session.
async fn is_clean(server: &TestServer, client: &Client) {
    until(async || {
        let markers = own_nodes(client).await.len();
        markers == 1 && server.as_embedded().is_none_or(|server| server.watch_count() == 0)
    })
    .await;
}

/// Drops the future of `call` after each number of polls, until the future finishes first.
async fn at_each_poll(server: &TestServer, client: &Client, call: impl AsyncFn(Inspector)) {
    soon(Inspector::new(client).path("/")).await.unwrap();
    for polls in 0..MOST_POLLS {
        // Each inspector has a new clock, so each call reads the servers' clock.
        let done = soon(abandon_at(polls, call(Inspector::new(client)))).await.is_some();
        is_clean(server, client).await;
        if done {
            assert_eq!(soon(Inspector::new(client).path("/v")).await.unwrap().kind(), Kind::Counter);
            return;
        }
    }
    panic!("the call did not finish within {MOST_POLLS} polls");
}

both_backends! {
    async fn a_report_or_walk_that_is_dropped_leaves_nothing(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        fill(&client).await;
        at_each_poll(&server, &client, async |inspector| drop(inspector.path("/jobs").await.unwrap())).await;
        at_each_poll(&server, &client, async |inspector| drop(inspector.walk("/").await.unwrap())).await;
    }

    async fn a_stream_that_is_dropped_leaves_nothing(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        fill(&client).await;
        at_each_poll(&server, &client, async |inspector| {
            let mut reports = inspector.watch("/v");
            reports.next().await.unwrap().unwrap();
            other.set("/v", "8", None).await.unwrap();
            reports.next().await.unwrap().unwrap();
        })
        .await;
        at_each_poll(&server, &client, async |inspector| {
            let mut surveys = inspector.watch_below("/");
            surveys.next().await.unwrap().unwrap();
            other.set("/v", "9", None).await.unwrap();
            surveys.next().await.unwrap().unwrap();
        })
        .await;
    }
}
