use super::arguments::Delete;
use super::failure::missing;
use crate::app::App;
use crate::exit::{Ending, Failure, Outcome};
use crate::output::{Deleted, utc};
use docent::recipe::if_exists;
use docent::{Client, ErrorKind};
use docent_config::internals::{HISTORY, RUNNING};

/// Deletes a value, its history and the reports of its readers, after showing it. A value that another client
/// publishes meanwhile stays.
///
/// # Errors
/// `Conflict` if the value has another version than requested or was changed meanwhile; `Other` if there is
/// no value or there are other nodes below it; `Usage` without a terminal and `--yes`. Nothing was deleted
/// then.
pub(super) async fn run(app: &App, client: &Client, arguments: &Delete) -> Outcome {
    let path = &*arguments.key;
    client.sync(path).await?;
    let node = if_exists(client.get(path).await)?.ok_or_else(|| missing(path))?;
    let version = node.stat.version;
    if let Some(wanted) = arguments.if_version.filter(|wanted| *wanted != version) {
        return Err(Failure::conflict(format!(
            "{path} has version {version}, not {wanted}: nothing was deleted"
        )));
    }
    if node.stat.owner.is_some() {
        return Err(Failure::other(format!("{path} is ephemeral, so no configuration: nothing was deleted")));
    }
    let (history, readers) = (format!("{path}/{HISTORY}"), format!("{path}/{RUNNING}"));
    let earlier = names(client, &history).await?;
    let count = earlier.as_ref().map_or(0, Vec::len);
    app.output.remark(format!(
        "{path}\n  version {version} of {}, {} bytes, {count} earlier values",
        utc(node.stat.modified),
        node.data.len()
    ));
    if !arguments.yes {
        app.confirm("Delete it?", "nothing was deleted").await?;
    }
    let changed =
        || Failure::conflict(format!("{path} was changed or deleted meanwhile: nothing was deleted"));
    // The user may have taken minutes to answer, and a value that was published again has the first version.
    client.sync(path).await?;
    if client.exists(path).await?.is_none_or(|now| now.czxid != node.stat.czxid) {
        return Err(changed());
    }
    let reported = names(client, &readers).await?;
    let mut delete = client.transaction();
    for (folder, names) in [(history, earlier), (readers, reported)] {
        let Some(names) = names else { continue };
        for name in names {
            delete = delete.delete(&format!("{folder}/{name}"), None);
        }
        delete = delete.delete(&folder, None);
    }
    delete.delete(path, version).commit_exactly().await.map_err(|error| match error.kind() {
        ErrorKind::BadVersion | ErrorKind::NoNode => changed(),
        ErrorKind::NotEmpty => Failure::other(format!(
            "there are other nodes below {}: nothing was deleted",
            error.path().unwrap_or(path)
        )),
        _ => error.into(),
    })?;
    app.output.remark(format!("deleted {path}"));
    if app.output.is_json() {
        app.output.json(&Deleted::new(path))?;
    }
    Ok(Ending::Done)
}

/// Returns the names of the nodes in a folder, or `None` if it does not exist.
async fn names(client: &Client, folder: &str) -> Result<Option<Vec<String>>, Failure> {
    Ok(if_exists(client.children(folder).await)?.map(|children| children.names))
}
