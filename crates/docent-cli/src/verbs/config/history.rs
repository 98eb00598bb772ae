use super::failure::missing;
use super::set::tell;
use super::shown::Shown;
use crate::app::App;
use crate::exit::{Ending, Failure, Outcome};
use crate::output::{Table, utc};
use bytes::Bytes;
use docent::config::{Config, Revision};

/// Longest beginning of a value that a row shows, in characters.
const LONGEST: usize = 60;

/// Lists the present value and those it replaced, the latest first.
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

/// Publishes an earlier value again, unless somebody publishes meanwhile.
pub(super) async fn roll_back(app: &App, config: &Config<Bytes>, version: Option<i32>) -> Outcome {
    let seen = config.get().await?.and_then(|present| present.revision());
    let seen = seen.ok_or_else(|| missing(config.path()))?;
    let past = config.history().await?;
    // The latest first: of a node that was deleted and made anew a version may be there twice.
    let to = past
        .iter()
        .map(|entry| entry.revision)
        .find(|past| version.is_none_or(|wanted| past.version == wanted));
    let to = to.ok_or_else(|| match version {
        Some(version) => Failure::other(format!("the history of {} has no version {version}", config.path())),
        None => Failure::other(format!("{} has no history", config.path())),
    })?;
    let published = config.rollback_if(&to, &seen).await?;
    tell(app, config.path(), &published)?;
    Ok(Ending::Done)
}
