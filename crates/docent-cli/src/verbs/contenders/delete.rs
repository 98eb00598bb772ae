use super::arguments::BreakArguments;
use super::found::{found, report};
use super::shown::{node, show};
use crate::app::App;
use crate::exit::{Ending, Failure, Outcome};
use crate::output::Deleted;
use docent::Client;
use docent::node::Stat;
use docent::recipe::proofs_below;

/// Folder, below a queue, of the claims of Docent's queues.
const CLAIMS: &str = "/claims/";

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
            "{} has several holders: name one of {}",
            report.path,
            names.join(", ")
        )));
    };
    let (path, stat) = node(client, &report.path, one).await?;
    show(app, &path, one, &stat);
    if !arguments.yes {
        app.confirm("Delete it?", "nothing was deleted").await?;
    }
    delete_shown(client, &path, &stat, &proofs(client, &path).await?).await?;
    app.output.remark(match one.holds {
        true => format!("deleted {path}"),
        false => format!("deleted {path}; a waiter that is still alive rejoins the queue at its end"),
    });
    if app.output.is_json() {
        app.output.json(&Deleted::new(&path))?;
    }
    Ok(Ending::Done)
}

/// Deletes the node that was shown, and no other: the user may have taken minutes to answer, and names are
/// reused when a folder is re-created. Also deletes `other_nodes`, nodes that belong only to this node.
///
/// # Errors
/// `Conflict` if the node was deleted or replaced.
async fn delete_shown(
    client: &Client,
    path: &str,
    shown: &Stat,
    other_nodes: &[String],
) -> Result<(), Failure> {
    client.sync(path).await?;
    match client.exists(path).await? {
        Some(now) if now.czxid == shown.czxid => {
            // A plain delete might be applied later, to another node.
            let delete = client.transaction().delete(path, now.version);
            let delete = other_nodes.iter().fold(delete, |delete, other| delete.delete(other, None));
            delete.commit_exactly().await?;
            Ok(())
        }
        _ => Err(Failure::conflict(format!("{path} was deleted or replaced meanwhile: nothing was deleted"))),
    }
}

/// Returns the proofs of the claim of a queue item at `path`. A queue in another layout has none.
async fn proofs(client: &Client, path: &str) -> Result<Vec<String>, Failure> {
    match path.rsplit_once(CLAIMS) {
        Some((queue, item)) => Ok(proofs_below(client, &format!("{queue}/items/{item}")).await?),
        None => Ok(Vec::new()),
    }
}
