//! Messages about waits that last long.

use crate::secrets::Printed;
use crate::{builder, connect};
use docent::{ConnectionState, Election, Mutex};
use docent_battery::Backend;
use docent_tests::{soon, until};
use std::time::Duration;
use tokio::time::timeout;

/// Longer than the two minutes after which the second reminder is due.
const OUTAGE: Duration = Duration::from_secs(130);

#[tokio::test(start_paused = true)]
async fn an_outage_is_reported_each_minute_with_the_guards_that_were_lost() {
    let (printed, _logging) = Printed::from_here_on();
    let server = Backend::Memory.start().await;
    let proxy = server.proxy().await;
    let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
    let _guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
    proxy.cut().await;
    let mut state = client.state();
    soon(state.reached(ConnectionState::Suspended)).await;
    let back = timeout(OUTAGE, state.reached(ConnectionState::Connected)).await;
    assert!(back.is_err());
    let reminders = || printed.lines_with("still without a connection");
    assert!(reminders().len() == 2, "{:#?}", reminders());
    for line in reminders() {
        assert!(line.contains("WARN") && line.contains("guards=0 guards_lost=1"), "{line}");
    }
    proxy.heal().await.unwrap();
    soon(client.state().reached(ConnectionState::Connected)).await;
    let _ = timeout(OUTAGE, state.reached(ConnectionState::Closed)).await;
    assert_eq!(reminders().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_waits_for_long_names_the_node_and_its_owner() {
    let (printed, _logging) = Printed::from_here_on();
    let server = Backend::Memory.start().await;
    let (client, other) = (connect(&server).await, connect(&server).await);
    let leads = soon(Election::new(&other, "/leader").unwrap().campaign()).await.unwrap();
    let election = Election::new(&client, "/leader").unwrap();
    let lines = || printed.lines_with("waiting to be elected");
    assert!(timeout(Duration::from_secs(8), election.campaign()).await.is_err());
    assert!(lines().is_empty());
    assert!(timeout(Duration::from_secs(100), election.campaign()).await.is_err());
    let lines = lines();
    let first = &election.candidates().await.unwrap()[0];
    assert!(
        lines.len() == 1 && lines[0].contains(&first.name) && lines[0].contains(&first.owner_text()),
        "{lines:#?}"
    );
    assert!(lines[0].contains(&format!("path={}/leader", server.root())), "{lines:#?}");
    drop(leads);
    until(async || election.candidates().await.unwrap().is_empty()).await;
}
