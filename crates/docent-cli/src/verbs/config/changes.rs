use super::arguments::Watch;
use super::history::LONGEST;
use super::shown::Shown;
use crate::app::App;
use crate::child::Signals;
use crate::exit::{Ending, Failure, Outcome};
use crate::output::Deleted;
use crate::verbs::inspect::shortened;
use bytes::Bytes;
use docent::config::{Change, Config, ConfigTree, Snapshot, TreeChange};
use docent::inspect::NodeText;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A change as shown in JSON: the new value or the deletion, and the old value.
#[derive(Debug, Serialize)]
struct ShownChange<'a> {
    #[serde(flatten)]
    now: Now<'a>,
    old_version: Option<i32>,
    old_value: Option<NodeText>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Now<'a> {
    Value(Shown<'a>),
    Deleted(Deleted<'a>),
}

/// Prints a row for each change of a value, with the old and the new value, until a signal comes.
pub(super) async fn of_value(app: &App, config: &Config<Bytes>, signals: &mut Signals) -> Outcome {
    let mut subscription = signals.or(config.subscribe_when_published()).await??;
    let mut old = Some(subscription.current());
    app.output.remark(format!("following {}", config.path()));
    loop {
        let new = match signals.or(subscription.changed()).await? {
            None => return Ok(Ending::Done),
            Some(Ok(Change::Value(value))) => Some(value),
            Some(Ok(Change::Deleted)) => None,
            Some(Ok(_)) => continue,
            Some(Err(error)) => {
                app.output.remark(format!("cannot read the value; retrying: {error}"));
                continue;
            }
        };
        print(app, config.path(), old.as_deref(), new.as_deref())?;
        old = new;
    }
}

/// Prints a row for each change of a value below a path, with the old and the new value, until a signal
/// comes.
pub(super) async fn below(app: &App, tree: &ConfigTree<Bytes>, signals: &mut Signals) -> Outcome {
    let mut subscription = signals.or(tree.subscribe()).await??;
    let mut known: BTreeMap<Arc<str>, Arc<Snapshot<Bytes>>> =
        subscription.current().iter().map(|(key, value)| (Arc::clone(key), Arc::clone(value))).collect();
    app.output.remark(format!("following {} values below {}", known.len(), tree.path()));
    loop {
        let (key, old, new) = match signals.or(subscription.changed()).await? {
            None => return Ok(Ending::Done),
            Some(Ok(TreeChange::Value(key, value))) => {
                let old = known.insert(Arc::clone(&key), Arc::clone(&value));
                (key, old, Some(value))
            }
            Some(Ok(TreeChange::Deleted(key))) => {
                let old = known.remove(&key);
                (key, old, None)
            }
            Some(Ok(_)) => continue,
            Some(Err(error)) => {
                app.output.remark(format!("cannot read the values; retrying: {error}"));
                continue;
            }
        };
        print(app, &format!("{}/{key}", tree.path()), old.as_deref(), new.as_deref())?;
    }
}

/// Prints a row, unless nothing changed: the first values may be reported again.
fn print(
    app: &App,
    path: &str,
    old: Option<&Snapshot<Bytes>>,
    new: Option<&Snapshot<Bytes>>,
) -> Result<(), Failure> {
    let revision = |snapshot: Option<&Snapshot<Bytes>>| snapshot.and_then(Snapshot::revision);
    if revision(old) == revision(new) && old.is_some() == new.is_some() {
        return Ok(());
    }
    let old_version = revision(old).map(|revision| revision.version);
    if app.output.is_json() {
        let now = match new {
            Some(new) => Now::Value(Shown::of(path, new)),
            None => Now::Deleted(Deleted::new(path)),
        };
        let old_value = old.map(|old| NodeText::new(old.value().clone()));
        return Ok(app.output.json(&ShownChange { now, old_version, old_value })?);
    }
    let version =
        |snapshot| revision(snapshot).map_or_else(|| "-".to_owned(), |revision| revision.version.to_string());
    let text = |snapshot: Option<&Snapshot<Bytes>>| match snapshot {
        Some(snapshot) => format!("{:?}", shortened(&String::from_utf8_lossy(snapshot.value()), LONGEST)),
        None => "-".to_owned(),
    };
    let line = format!("{path}  {} -> {}  {} -> {}", version(old), version(new), text(old), text(new));
    Ok(app.output.line(line)?)
}

impl Watch {
    /// Returns true if rows of changes are wanted.
    pub(super) fn wants_rows(&self) -> bool {
        self.below || self.diff
    }
}
