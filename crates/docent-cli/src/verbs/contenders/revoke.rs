use super::arguments::RevokeArguments;
use super::found::{Found, found, report};
use super::shown::{node, show};
use crate::app::App;
use crate::exit::{Ending, Failure, Outcome};
use docent::inspect::{Kind, Report};
use docent::locks::{Mutex, Participant, RwLock, Semaphore};
use docent::{Client, Error};
use serde::Serialize;

/// A holder that was asked to leave, as JSON shows it.
#[derive(Debug, Serialize)]
struct Asked<'a> {
    path: &'a str,
    name: &'a str,
    asked: bool,
}

/// Asks holders to leave.
pub(crate) async fn run(app: &App, arguments: &RevokeArguments) -> Outcome {
    app.with_signals(async |client, signals| signals.or(revoke(app, client, arguments)).await?).await
}

async fn revoke(app: &App, client: &Client, arguments: &RevokeArguments) -> Outcome {
    let report = report(client, &arguments.path).await?;
    let wanted = found(&report, arguments.name.as_deref())?;
    // The request takes the place of the identity, which nobody can read any more then.
    for contender in &wanted {
        let (path, stat) = node(client, &report.path, contender).await?;
        show(app, &path, contender, &stat);
    }
    ask(client, &report, &wanted).await?;
    for contender in &wanted {
        app.output.remark(format!("asked {} of {} to leave", contender.name, report.path));
        if app.output.is_json() {
            app.output.json(&Asked { path: &report.path, name: &contender.name, asked: true })?;
        }
    }
    Ok(Ending::Done)
}

/// Asks by the lock that the path is.
async fn ask(client: &Client, report: &Report, wanted: &[Found]) -> Result<(), Failure> {
    let path = &report.path;
    // Curator's elections have the nodes of its mutexes.
    let kind = if report.may_be.contains(&Kind::Mutex) { Kind::Mutex } else { report.kind() };
    match kind {
        Kind::Mutex => {
            let lock = Mutex::new(client, path)?;
            ask_each(&lock.participants().await?, wanted, async |one| lock.revoke(one).await).await
        }
        Kind::ReadWriteLock => {
            let lock = RwLock::new(client, path)?;
            ask_each(&lock.participants().await?, wanted, async |one| lock.revoke(one).await).await
        }
        Kind::Semaphore => {
            let lock = Semaphore::new(client, path, 1)?;
            ask_each(&lock.participants().await?, wanted, async |one| lock.revoke(one).await).await
        }
        kind => {
            Err(Failure::other(format!("{path} is of the kind {kind}, which nobody can be asked to leave")))
        }
    }
}

/// Asks each of the `wanted` that is still there.
async fn ask_each(
    participants: &[Participant],
    wanted: &[Found],
    ask: impl AsyncFn(&Participant) -> Result<(), Error>,
) -> Result<(), Failure> {
    for participant in participants.iter().filter(|one| wanted.iter().any(|other| other.name == one.name)) {
        ask(participant).await?;
    }
    Ok(())
}
