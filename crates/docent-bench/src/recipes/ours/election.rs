use super::series::{Measured, add_times};
use super::worker::{clients, close};
use crate::recipes::order::{Answer, Order};
use anyhow::{Context, Result};
use docent::{Election, Leadership};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// Time in which all candidates find their places before the leader resigns.
pub(super) const PAUSE: Duration = Duration::from_millis(10);

/// Term of a candidate: its number, its leadership, and when it learned of the leadership.
type Term = (usize, Leadership, Instant);

/// `candidates` sessions, of which the leader resigns. Measures the time from the call until another
/// candidate leads.
pub(super) async fn resign(order: &Order) -> Result<Answer> {
    let clients = clients(order, order.count("candidates")).await?;
    let mut elections = Vec::new();
    for client in &clients {
        elections.push(Election::new(client, &order.path)?);
    }
    let (terms, mut begun) = unbounded_channel();
    for (number, election) in elections.iter().enumerate() {
        campaign(election, number, &terms);
    }
    let (mut number, mut leadership, _) = begun.recv().await.context("no candidate leads")??;

    let (mut times, measured) = (Vec::new(), Measured::start());
    while times.len() < order.count("samples") {
        tokio::time::sleep(PAUSE).await;
        let called = Instant::now();
        leadership.resign().await?;
        let next: Term = begun.recv().await.context("no candidate leads")??;
        times.push(next.2 - called);
        campaign(&elections[number], number, &terms);
        (number, leadership) = (next.0, next.1);
    }
    let mut answer = measured.stop(times.len() as u64).await;
    add_times(&mut answer, "", &times);
    drop(leadership);
    close(clients).await;
    Ok(answer)
}

fn campaign(election: &Election, number: usize, terms: &UnboundedSender<Result<Term>>) {
    let (campaign, terms) = (election.campaign(), terms.clone());
    tokio::spawn(async move {
        let term = campaign.await.map(|leadership| (number, leadership, Instant::now()));
        // The bench may already have ended.
        let _ = terms.send(term.map_err(Into::into));
    });
}
