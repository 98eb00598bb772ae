use super::arguments::BreakArguments;
use super::found::{contenders, report};
use crate::app::App;
use crate::exit::{Ending, Failure, Outcome};
use crate::verbs::inspect::{age, identity};
use docent::Client;
use docent::inspect::Contender;
use docent::node::Stat;
use std::io::{self, IsTerminal};
use tokio::task::spawn_blocking;

/// Folders of contenders below the path of a recipe: its own, and that of a semaphore's permits.
const FOLDERS: [&str; 2] = ["", "/leases"];

/// Deletes the node of a contender.
pub(crate) async fn run(app: &App, arguments: &BreakArguments) -> Outcome {
    app.with_signals(async |client, signals| signals.or(delete(app, client, arguments)).await?).await
}

async fn delete(app: &App, client: &Client, arguments: &BreakArguments) -> Outcome {
    let report = report(client, &arguments.path).await?;
    let found = contenders(&report, arguments.name.as_deref())?;
    let [contender] = &found[..] else {
        let names: Vec<_> = found.iter().map(|one| &*one.name).collect();
        return Err(Failure::usage(format!(
            "several hold {}: name one of {}",
            report.path,
            names.join(", ")
        )));
    };
    let (path, stat) = node(client, &report.path, contender).await?;
    show(app, &path, contender, &stat);
    if !arguments.yes {
        confirm().await?;
    }
    // Names are never used again, so that a node of this name and version is the one that was shown.
    client.delete(&path, stat.version).await?;
    app.output.remark(format!("deleted {path}"));
    Ok(Ending::Done)
}

/// The node of a contender.
async fn node(client: &Client, path: &str, contender: &Contender) -> Result<(String, Stat), Failure> {
    for folder in FOLDERS {
        let path = format!("{}{folder}/{}", path.trim_end_matches('/'), contender.name);
        if let Some(stat) = client.exists(&path).await? {
            return Ok((path, stat));
        }
    }
    Err(Failure::other(format!("{} has left {path} meanwhile", contender.name)))
}

fn show(app: &App, path: &str, contender: &Contender, stat: &Stat) {
    let state = if contender.holds { "holds" } else { "waits" };
    let session = stat.owner.map_or_else(|| "none".to_owned(), |session| format!("{session:#x}"));
    let since = age(contender.held.or(contender.since));
    app.output
        .remark(format!("{path}\n  {state} for {since}, owner {}, session {session}", identity(contender)));
}

/// Asks on the terminal.
///
/// # Errors
/// `Usage` without a terminal, `Other` for any answer but `y` or `yes`.
async fn confirm() -> Result<(), Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::usage("nobody can be asked without a terminal: give --yes"));
    }
    eprint!("Delete it? [y/N] ");
    let mut answer = String::new();
    let read = spawn_blocking(move || io::stdin().read_line(&mut answer).map(|_| answer)).await;
    match read {
        Ok(Ok(answer)) if ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) => Ok(()),
        _ => Err(Failure::other("nothing was deleted")),
    }
}
