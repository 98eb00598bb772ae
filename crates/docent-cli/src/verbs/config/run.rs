use super::arguments::{Action, Arguments};
use super::{changes, delete, edit, get, history, import, list, set, watch};
use crate::app::App;
use crate::child::Signals;
use crate::exit::{Failure, Outcome};
use crate::verbs::kind_at::{ensure_value, or_unread};
use bytes::Bytes;
use docent::Client;
use docent::config::{Config, ConfigTree, Raw};

/// Runs the requested action. A signal ends it, or is passed on to a running command or editor.
pub(crate) async fn run(app: &App, arguments: &Arguments) -> Outcome {
    let mut signals = Signals::listen()?;
    // A file is read before a session exists, too.
    let entries = match &arguments.action {
        Action::Import(import) => signals.or(import::entries(import)).await??,
        _ => Vec::new(),
    };
    let given = match &arguments.action {
        // Standard input is read before a session exists, because its writer may take long.
        Action::Set(set) => signals.or(set::value(set)).await??,
        _ => Bytes::new(),
    };
    app.with_client(&mut signals, async |client, signals| {
        let config = |key: &str| value(client, key);
        match &arguments.action {
            Action::Get(get) => signals.or(get::run(app, &config(&get.key)?, get)).await?,
            Action::Set(set) => {
                or_unread(signals.or(ensure_value(client, &set.key)).await?)?;
                signals.or(set::run(app, &config(&set.key)?, set, &given)).await?
            }
            Action::Edit(edit) => edit::run(app, &config(&edit.key)?, edit, signals).await,
            Action::Watch(watch) if watch.below => {
                changes::below(app, &tree(client, &watch.key)?, signals).await
            }
            Action::Watch(watch) if watch.wants_rows() => {
                changes::of_value(app, &config(&watch.key)?, signals).await
            }
            Action::Watch(watch) => watch::run(app, &config(&watch.key)?, watch, signals).await,
            Action::Ls { prefix } => signals.or(list::list(app, client, prefix)).await?,
            Action::Export { prefix } => signals.or(list::export(app, client, prefix)).await?,
            Action::Import(import) => signals.or(import::run(app, client, import, entries)).await?,
            Action::Delete(delete) => {
                value(client, &delete.key)?;
                signals.or(delete::run(app, client, delete)).await?
            }
            Action::History { key } => signals.or(history::list(app, &config(key)?)).await?,
            Action::Rollback(rollback) => {
                signals.or(history::roll_back(app, &config(&rollback.key)?, rollback.version)).await?
            }
        }
    })
    .await
}

/// Returns the configurations below `path` as bytes.
fn tree(client: &Client, path: &str) -> Result<ConfigTree<Bytes>, Failure> {
    Ok(Config::builder_with(client, path, Raw).keep_longer_history().build_tree()?)
}

/// Returns the configuration at `key` as bytes, because the command does not know their meaning.
pub(super) fn value(client: &Client, key: &str) -> Result<Config<Bytes>, Failure> {
    if key == "/" {
        return Err(Failure::usage("key \"/\" must be below the root"));
    }
    Ok(Config::builder_with(client, key, Raw).keep_longer_history().build()?)
}
