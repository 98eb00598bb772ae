//! Cases that run once for each request, or for each poll.

use docent::testkit::{FaultRun, LinkFault, abandon_at, break_each_request, drop_at_each_poll};
use docent::{Client, CreateMode, Error, server::Server};
use std::error::Error as StdError;
use std::sync::Mutex;

type CaseResult = Result<(), Box<dyn StdError + Send + Sync>>;

/// Sends three requests, of which the second fails if its outcome is unknown.
async fn case(run: &FaultRun) -> CaseResult {
    let client = Client::connect(run.connect_string()).await?;
    client.exists("/").await?;
    client.create(&format!("/node-{}", run.number()), "", CreateMode::Persistent).await?;
    client.exists("/").await?;
    client.close().await;
    Ok(())
}

#[tokio::test]
async fn each_request_is_broken_in_each_way() {
    let server = Server::start().await.unwrap();
    let runs = Mutex::new(Vec::new());
    let requests = break_each_request(server.connect_string(), async |run: &FaultRun| -> CaseResult {
        runs.lock().unwrap().push((run.number(), run.fault()));
        let client = Client::connect(run.connect_string()).await?;
        let _ = client.exists("/").await;
        let _ = client.create(&format!("/node-{}", run.number()), "", CreateMode::Persistent).await;
        client.close().await;
        Ok(())
    });
    let requests = requests.await.unwrap();
    // If a reply is lost, the client looks for the created node, which is one more request.
    assert!(requests >= 3, "{requests} requests");
    let runs = runs.lock().unwrap().clone();
    assert_eq!(runs.len(), (requests + 1) * 3);
    assert!(runs.iter().enumerate().all(|(place, (number, _))| place == *number));
    for fault in [LinkFault::Before, LinkFault::After, LinkFault::SessionEnd] {
        assert_eq!(runs.iter().filter(|(_, of)| *of == fault).count(), requests + 1);
    }
}

#[tokio::test]
async fn a_failing_case_is_reported_with_its_fault_and_request() {
    let server = Server::start().await.unwrap();
    let refused = async |run: &FaultRun| -> CaseResult {
        case(run).await.map_err(|error| format!("run {}: {error}", run.number()).into())
    };
    let failed = break_each_request(server.connect_string(), refused).await;
    // The outcome of a plain create is unknown after a lost reply.
    let failed = failed.unwrap_err().to_string();
    assert!(failed.starts_with("the link broke before request 2 (Create2): run 3: create"), "{failed}");
}

#[tokio::test]
async fn a_case_without_requests_is_refused_and_an_error_without_a_fault_is_reported() {
    let server = Server::start().await.unwrap();
    let none = break_each_request(server.connect_string(), async |_: &FaultRun| -> CaseResult { Ok(()) });
    assert!(none.await.unwrap_err().to_string().contains("no request"));
    let unbroken = async |_: &FaultRun| -> CaseResult { Err("its own error".into()) };
    let unbroken = break_each_request(server.connect_string(), unbroken).await.unwrap_err().to_string();
    assert_eq!(unbroken, "the link did not break: request 1 was not sent: its own error");
}

#[tokio::test]
async fn a_future_is_dropped_at_each_poll_until_it_is_done() {
    let server = Server::start().await.unwrap();
    let client = Client::connect(server.connect_string()).await.unwrap();
    let waits = drop_at_each_poll(async |polls| {
        Ok::<_, Error>(abandon_at(polls, client.exists("/")).await.transpose()?.is_some())
    });
    assert!(waits.await.unwrap() >= 1);
    let refused = drop_at_each_poll(async |polls| match polls {
        3 => Err("the third"),
        _ => Ok(false),
    });
    assert_eq!(refused.await.unwrap_err().to_string(), "dropped after 3 polls: the third");
    let never = drop_at_each_poll(async |_| Ok::<_, Error>(false));
    assert!(never.await.unwrap_err().to_string().contains("1000 polls"));
}
