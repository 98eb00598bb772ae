use super::arguments::RevokeArguments;
use super::found::{Found, found, report};
use super::shown::{node, show};
use crate::app::App;
use crate::exit::{Ending, Failure, Outcome};
use docent::inspect::{Kind, Report};
use docent::locks::{Mutex, Participant, RwLock, Semaphore};
use docent::{Client, Error};
use serde::Serialize;

/// A holder that was asked to leave, as shown in JSON.
#[derive(Debug, Serialize)]
struct RevocationLine<'a> {
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
    // Show the owners first: the request overwrites the identity, which cannot be read after that.
    for contender in &wanted {
        let (path, stat) = node(client, &report.path, contender).await?;
        show(app, &path, contender, &stat);
    }
    send_revocations(client, &report, &wanted).await?;
    for contender in &wanted {
        app.output.remark(format!("asked {} of {} to leave", contender.name, report.path));
        if app.output.is_json() {
            app.output.json(&RevocationLine { path: &report.path, name: &contender.name, asked: true })?;
        }
    }
    Ok(Ending::Done)
}

/// Sends the request through the lock at the path.
async fn send_revocations(client: &Client, report: &Report, wanted: &[Found]) -> Result<(), Failure> {
    let path = &report.path;
    // Curator's elections use the same nodes as its mutexes.
    let kind = if report.may_be.contains(&Kind::Mutex) { Kind::Mutex } else { report.kind() };
    match kind {
        Kind::Mutex => {
            let lock = Mutex::new(client, path)?;
            revoke_each(&lock.participants().await?, wanted, async |one| lock.revoke(one).await).await
        }
        Kind::ReadWriteLock => {
            let lock = RwLock::new(client, path)?;
            revoke_each(&lock.participants().await?, wanted, async |one| lock.revoke(one).await).await
        }
        Kind::Semaphore => {
            let lock = Semaphore::new(client, path, 1)?;
            revoke_each(&lock.participants().await?, wanted, async |one| lock.revoke(one).await).await
        }
        kind => {
            Err(Failure::other(format!("{path} is of kind {kind}, whose holders cannot be asked to leave")))
        }
    }
}

/// Asks each `wanted` contender that still exists.
async fn revoke_each(
    participants: &[Participant],
    wanted: &[Found],
    revoke: impl AsyncFn(&Participant) -> Result<(), Error>,
) -> Result<(), Failure> {
    for participant in participants.iter().filter(|one| wanted.iter().any(|other| other.name == one.name)) {
        revoke(participant).await?;
    }
    Ok(())
}
