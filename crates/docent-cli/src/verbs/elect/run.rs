use super::Arguments;
use super::failures::Failures;
use super::listen::listen;
use super::term::{Term, lead};
use crate::app::App;
use crate::child::{ChildCommand, Signals};
use crate::connect::close;
use crate::exit::{Ending, Failure, Outcome};
use docent::{Client, Election};
use tokio::time::{Instant, sleep_until};

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
    let mut failures = Failures::default();
    loop {
        let leadership = signals.or(election.campaign()).await??;
        signals.check()?;
        let began = Instant::now();
        match lead(app, &arguments.path, leadership, command.as_ref(), policy, signals).await? {
            Term::Stopped(ending) => return Ok(ending),
            Term::Done(exit) | Term::Revoked(exit) if arguments.once => return Ok(Ending::Child(exit)),
            // The command was asked to end.
            Term::Revoked(_) => {}
            Term::Done(exit) => {
                let count = failures.note(exit, began.elapsed());
                if arguments.max_failures.is_some_and(|max| count >= max.get()) {
                    return Ok(Ending::Child(exit));
                }
                if !exit.success() {
                    app.output.remark(format!("the command ended with {exit}; failures in a row: {count}"));
                }
            }
            Term::Lost(text) if arguments.once => return Err(Failure::lost(text)),
            Term::Lost(text) => app.output.remark(format!("{text}; standing again")),
        }
        signals.or(sleep_until(began + failures.interval())).await?;
    }
}
