use super::failure::missing;
use super::set::print_published;
use super::shown::Shown;
use crate::app::App;
use crate::exit::{Ending, Failure, Outcome};
use crate::output::{Table, utc};
use bytes::Bytes;
use docent::config::{Config, Revision};

/// Maximum number of characters of a value that a row shows.
pub(super) const LONGEST: usize = 60;

/// Lists the current value and those that it replaced, the latest first.
pub(super) async fn list(app: &App, config: &Config<Bytes>) -> Outcome {
    let present = config.get().await?;
    let present = present.and_then(|present| Some((present.revision()?, present.value().clone())));
    let past = config.history().await?.into_iter();
    let past = past.filter_map(|entry| Some((entry.revision, entry.value.ok()?)));
    let all: Vec<_> = present.into_iter().chain(past).collect();
    if app.output.is_json() {
        let show = |(revision, value): &(Revision, Bytes)| {
            app.output.json(&Shown::new(config.path(), value, Some(*revision)))
        };
        all.iter().try_for_each(show)?;
    } else {
        app.output.table(&table(&all))?;
    }
    Ok(Ending::Done)
}

fn table(all: &[(Revision, Bytes)]) -> Table {
    let mut table = Table::new(["VERSION", "PUBLISHED", "BYTES", "VALUE"]);
    for (revision, value) in all {
        let text: String = String::from_utf8_lossy(value).chars().take(LONGEST).collect();
        let (version, bytes) = (revision.version.to_string(), value.len().to_string());
        table.row([version, utc(revision.modified), bytes, text]);
    }
    table
}

/// Publishes an earlier value again, unless another client publishes meanwhile.
pub(super) async fn roll_back(app: &App, config: &Config<Bytes>, version: Option<i32>) -> Outcome {
    let seen = config.get().await?.and_then(|present| present.revision());
    let seen = seen.ok_or_else(|| missing(config.path()))?;
    let past = config.history().await?;
    // The latest match wins: if the node was deleted and re-created, a version may exist twice.
    let to = past
        .iter()
        .map(|entry| entry.revision)
        .find(|past| version.is_none_or(|wanted| past.version == wanted));
    let to = to.ok_or_else(|| match version {
        Some(version) => Failure::other(format!("the history of {} has no version {version}", config.path())),
        None => Failure::other(format!("{} has no history", config.path())),
    })?;
    let published = config.rollback_if(&to, &seen).await?;
    print_published(app, config.path(), &published)?;
    Ok(Ending::Done)
}
