use super::arguments::Import;
use super::entry::Entry;
use super::run::value;
use crate::app::App;
use crate::exit::{Ending, Failure, Outcome};
use crate::input;
use crate::output::Table;
use crate::verbs::kind_at::ensure_value;
use bytes::Bytes;
use docent::config::Revision;
use docent::node::{Node, Transaction};
use docent::recipe::if_exists;
use docent::{Client, CreateMode, ErrorKind};
use docent_config::internals::{HISTORY, revision_name};
use serde::Serialize;
use std::collections::HashSet;

/// Bytes of a transaction besides two values.
const FIELDS: usize = 64 * 1024;

/// What is done with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    /// There is no value yet.
    Create,
    /// The value differs, and is replaced.
    Replace,
    /// The value is the same.
    Unchanged,
    /// The value differs, and is not replaced.
    Conflict,
}

/// An entry, and the node that it was compared with.
struct Step {
    entry: Entry,
    action: Action,
    present: Option<Node>,
}

/// A step as shown in JSON.
#[derive(Debug, Serialize)]
struct ShownStep<'a> {
    path: &'a str,
    action: Action,
    /// Version of the value that exists.
    version: Option<i32>,
}

/// Returns the entries of the file.
///
/// # Errors
/// `Usage` if the file cannot be read, `BadData` with the number of a line that is not valid.
pub(super) async fn entries(arguments: &Import) -> Result<Vec<Entry>, Failure> {
    let bytes = match arguments.file.to_str() {
        Some("-") => input::all().await?,
        _ => input::file(&arguments.file)?,
    };
    let entries = Entry::all_of(&bytes)?;
    if entries.is_empty() {
        return Err(Failure::bad_data(format!("{} has no values", arguments.file.display())));
    }
    Ok(entries)
}

/// Publishes all entries in one transaction, each on condition that its node has not changed since it was
/// compared.
///
/// # Errors
/// `Conflict` if values differ from those at the servers, or another client changes one meanwhile; `BadData`
/// if all values together do not fit into one request. Nothing was imported then.
pub(super) async fn run(app: &App, client: &Client, arguments: &Import, entries: Vec<Entry>) -> Outcome {
    client.sync("/").await?;
    let mut steps = Vec::new();
    for entry in entries {
        steps.push(compare(client, entry, arguments.overwrite).await?);
    }
    show(app, &steps)?;
    let conflicts = steps.iter().filter(|step| step.action == Action::Conflict).count();
    if conflicts > 0 {
        return Err(Failure::conflict(format!(
            "{conflicts} of {} values differ from those at the servers: nothing was imported; --overwrite replaces them",
            steps.len()
        )));
    }
    if !arguments.dry_run && steps.iter().any(|step| step.action != Action::Unchanged) {
        commit(client, &steps).await?;
    }
    Ok(Ending::Done)
}

/// Compares an entry with its node.
async fn compare(client: &Client, entry: Entry, overwrites: bool) -> Result<Step, Failure> {
    value(client, &entry.path)?;
    ensure_value(client, &entry.path).await?;
    let present = if_exists(client.get(&entry.path).await)?;
    if present.as_ref().is_some_and(|node| node.stat.owner.is_some()) {
        return Err(Failure::other(format!("{} is ephemeral: nothing was imported", entry.path)));
    }
    let action = match &present {
        None => Action::Create,
        Some(node) if node.data == entry.value => Action::Unchanged,
        // A folder has no value yet.
        Some(node) if node.data.is_empty() && node.stat.num_children > 0 => Action::Create,
        Some(_) if overwrites => Action::Replace,
        Some(_) => Action::Conflict,
    };
    Ok(Step { entry, action, present })
}

fn show(app: &App, steps: &[Step]) -> Result<(), Failure> {
    let mut table = Table::new(["ACTION", "PATH", "VERSION"]);
    for Step { entry, action, present } in steps {
        let version = present.as_ref().map(|node| node.stat.version);
        if app.output.is_json() {
            app.output.json(&ShownStep { path: &entry.path, action: *action, version })?;
        } else {
            let version = version.map(|version| version.to_string()).unwrap_or_default();
            table.row([action.name(), &entry.path, &version]);
        }
    }
    if !app.output.is_json() {
        app.output.table(&table)?;
    }
    Ok(())
}

async fn commit(client: &Client, steps: &[Step]) -> Result<(), Failure> {
    let mut transaction = client.transaction();
    let mut exists = HashSet::new();
    for step in steps {
        let Step { entry: Entry { path, value }, present, .. } = step;
        transaction = match present {
            None => {
                let transaction = with_parents(client, transaction, path, &mut exists).await?;
                exists.insert(path.clone());
                transaction.create(path, value.clone(), CreateMode::Persistent)
            }
            Some(node) if step.action == Action::Unchanged => transaction.check(path, node.stat.version),
            Some(node) => {
                exists.insert(path.clone());
                let transaction = with_history(client, transaction, step, node).await?;
                transaction.set(path, value.clone(), node.stat.version)
            }
        };
    }
    transaction.commit_exactly().await.map_err(|error| match error.kind() {
        ErrorKind::BadVersion | ErrorKind::NoNode | ErrorKind::NodeExists => Failure::conflict(format!(
            "another client changed {} meanwhile: nothing was imported",
            error.path().unwrap_or("a value")
        )),
        ErrorKind::TooLarge => Failure::bad_data(format!("{error}: nothing was imported; split the file")),
        _ => error.into(),
    })?;
    Ok(())
}

/// Adds the creation of all parents of `path` that are missing and not yet in the transaction.
async fn with_parents(
    client: &Client,
    mut transaction: Transaction,
    path: &str,
    exists: &mut HashSet<String>,
) -> Result<Transaction, Failure> {
    let ends = path.match_indices('/').map(|(end, _)| end).filter(|end| *end > 0);
    for parent in ends.map(|end| &path[..end]) {
        if exists.insert(parent.to_owned()) && client.exists(parent).await?.is_none() {
            transaction = transaction.create(parent, Bytes::new(), CreateMode::Persistent);
        }
    }
    Ok(transaction)
}

/// Adds the value of `node` to its history. The next publish deletes surplus values.
async fn with_history(
    client: &Client,
    transaction: Transaction,
    step: &Step,
    node: &Node,
) -> Result<Transaction, Failure> {
    let Entry { path, value } = &step.entry;
    // As in each publish: a value that leaves no room for its successor is not kept.
    let fits = node.data.len() + value.len() + FIELDS <= client.max_request();
    if step.action != Action::Replace || !fits {
        return Ok(transaction);
    }
    let folder = format!("{path}/{HISTORY}");
    let entry = format!("{folder}/{}", revision_name(&Revision::from(&node.stat)));
    let transaction = match client.exists(&folder).await? {
        Some(_) => transaction,
        None => transaction.create(&folder, Bytes::new(), CreateMode::Persistent),
    };
    Ok(transaction.create(&entry, node.data.clone(), CreateMode::Persistent))
}

impl Action {
    fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Replace => "replace",
            Self::Unchanged => "unchanged",
            Self::Conflict => "conflict",
        }
    }
}
