use super::arguments::BreakArguments;
use super::found::{found, report};
use super::shown::{node, show};
use crate::app::App;
use crate::exit::{Ending, Failure, Outcome};
use crate::output::Deleted;
use docent::Client;
use docent::node::Stat;
use std::io::{self, IsTerminal};
use tokio::task::spawn_blocking;

/// Deletes the node of a contender, or of a claim.
pub(crate) async fn run(app: &App, arguments: &BreakArguments) -> Outcome {
    app.with_signals(async |client, signals| signals.or(delete(app, client, arguments)).await?).await
}

async fn delete(app: &App, client: &Client, arguments: &BreakArguments) -> Outcome {
    let report = report(client, &arguments.path).await?;
    let found = found(&report, arguments.name.as_deref())?;
    let [one] = &found[..] else {
        let names: Vec<_> = found.iter().map(|one| &*one.name).collect();
        return Err(Failure::usage(format!(
            "several hold {}: name one of {}",
            report.path,
            names.join(", ")
        )));
    };
    let (path, stat) = node(client, &report.path, one).await?;
    show(app, &path, one, &stat);
    if !arguments.yes {
        confirm(app).await?;
    }
    delete_shown(client, &path, &stat).await?;
    app.output.remark(match one.holds {
        true => format!("deleted {path}"),
        false => format!("deleted {path}; who waits on will stand in the line again, at its end"),
    });
    if app.output.is_json() {
        app.output.json(&Deleted::new(&path))?;
    }
    Ok(Ending::Done)
}

/// Deletes the node that was shown, and no other one: whoever was asked may have taken minutes to answer, and
/// names are used again where a folder was made anew.
async fn delete_shown(client: &Client, path: &str, shown: &Stat) -> Result<(), Failure> {
    client.sync(path).await?;
    match client.exists(path).await? {
        Some(now) if now.czxid == shown.czxid => {
            // A plain delete might be applied later, to another node.
            client.transaction().delete(path, now.version).commit_exactly().await?;
            Ok(())
        }
        _ => Err(Failure::other(format!("{path} has gone meanwhile: nothing was deleted"))),
    }
}

/// Asks on the terminal.
///
/// # Errors
/// `Usage` without a terminal, `Other` for any answer but `y` or `yes`.
async fn confirm(app: &App) -> Result<(), Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::usage("nobody can be asked without a terminal: give --yes"));
    }
    app.output.ask("Delete it? [y/N]");
    let mut answer = String::new();
    let read = spawn_blocking(move || io::stdin().read_line(&mut answer).map(|_| answer)).await;
    match read {
        Ok(Ok(answer)) if ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) => Ok(()),
        _ => Err(Failure::other("nothing was deleted")),
    }
}
