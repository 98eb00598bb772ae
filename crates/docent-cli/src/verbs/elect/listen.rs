use crate::app::App;
use crate::child::Signals;
use crate::exit::{Ending, Failure, Outcome};
use docent::election::Leader;
use docent::{Election, ErrorKind};
use futures_util::StreamExt;
use serde::Serialize;

/// A change of leader, as printed.
#[derive(Debug, Serialize)]
struct Line {
    leader: Option<Leader>,
}

/// Prints each leader until a signal comes.
pub(super) async fn listen(app: &App, election: &Election, signals: &mut Signals) -> Outcome {
    let mut leaders = election.observe();
    loop {
        let next = tokio::select! {
            _ = signals.next() => return Ok(Ending::Done),
            next = leaders.next() => next,
        };
        match next {
            Some(Ok(leader)) => print(app, leader)?,
            // Only an operator can change that.
            Some(Err(error)) if error.kind() == ErrorKind::NoAuth => return Err(error.into()),
            Some(Err(error)) => app.output.remark(format!("cannot read the leader; retrying: {error}")),
            None => return Err(Failure::other("the client was closed")),
        }
    }
}

fn print(app: &App, leader: Option<Leader>) -> Result<(), Failure> {
    if app.output.is_json() {
        app.output.json(&Line { leader })?;
    } else {
        let text = leader.map_or_else(|| "-".to_owned(), |leader| format!("{} {}", leader.id, leader.fence));
        app.output.line(text)?;
    }
    Ok(())
}
