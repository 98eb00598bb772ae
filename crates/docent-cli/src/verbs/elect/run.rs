use super::Arguments;
use super::listen::listen;
use super::term::{Term, lead};
use crate::app::App;
use crate::child::{ChildCommand, Signals};
use crate::connect::close;
use crate::exit::{Failure, Outcome};
use docent::{Client, Election};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Minimum time between the starts of two terms.
const TERM_INTERVAL: Duration = Duration::from_secs(1);

/// Stands for election until a signal comes, or observes it.
pub(crate) async fn run(app: &App, arguments: &Arguments) -> Outcome {
    let mut signals = Signals::listen()?;
    let client = app.connect_or_signal(&mut signals, None, None).await?;
    let outcome = match arguments.listen {
        true => match Election::new(&client, &arguments.path) {
            Ok(election) => listen(app, &election, &mut signals).await,
            Err(error) => Err(error.into()),
        },
        false => campaign(app, arguments, &client, &mut signals).await,
    };
    // Closing the client resigns, or leaves the queue.
    close(&client).await;
    outcome
}

async fn campaign(app: &App, arguments: &Arguments, client: &Client, signals: &mut Signals) -> Outcome {
    let policy = arguments.loss.policy(client)?;
    let id = arguments.id.clone().unwrap_or_else(|| client.identity().to_owned());
    let election = Election::builder(client, &arguments.path).id(id).build()?;
    let command = ChildCommand::new(&arguments.command);
    loop {
        let leadership = signals.or(election.campaign()).await??;
        signals.check()?;
        let began = Instant::now();
        match lead(app, &arguments.path, leadership, command.as_ref(), policy, signals).await? {
            Term::Stopped(ending) => return Ok(ending),
            Term::Done(ending) if arguments.once => return Ok(ending),
            Term::Done(_) => {}
            Term::Lost(text) if arguments.once => return Err(Failure::lost(text)),
            Term::Lost(text) => app.output.remark(format!("{text}; standing again")),
        }
        signals.or(sleep_until(began + TERM_INTERVAL)).await?;
    }
}
