use super::found::Found;
use crate::nodes::{Data, Place, join};
use crate::report::{ConfigReader, ConfigReport, EarlierValue, Recipe, Writer};
use docent_config::internals::{Applied, HISTORY, RUNNING, revision};

/// Recognises a configuration by its history, or by the reports of its readers.
pub(super) fn config(place: &Place<'_>) -> Option<Found> {
    if !place.has(HISTORY) && !place.has(RUNNING) {
        return None;
    }
    // Both folders are requested, so that they are read in one round.
    let (history, readers) = (history(place), readers(place));
    let history = history?;
    let readers = if place.has(HISTORY) { readers.unwrap_or_default() } else { readers? };
    // An empty folder of this name alone may have any meaning.
    if !place.has(HISTORY) && readers.is_empty() && place.stat.data_length == 0 {
        return None;
    }
    let config = ConfigReport {
        version: place.stat.version,
        size: place.stat.data_length,
        modified: place.modified(),
        history,
        readers,
    };
    Some(Found::new(Recipe::Config(config)).by([Writer::Docent]))
}

/// Returns the earlier values, the latest first, or `None` if the folder is not a history.
fn history(place: &Place<'_>) -> Option<Vec<EarlierValue>> {
    let names = place.names_below(HISTORY);
    let is_revision = |name: &String| revision(name).is_some();
    if !names.is_empty() && !names.iter().any(is_revision) {
        return None;
    }
    // Names sort in the order of the values.
    let earlier = names.iter().rev().filter_map(|name| revision(name)).map(|revision| EarlierValue {
        mzxid: revision.mzxid,
        version: revision.version,
        modified: revision.modified,
    });
    Some(earlier.collect())
}

/// Returns the readers that report what they run, or `None` if the folder holds something else: each of its
/// nodes belongs to no session, or has other data.
fn readers(place: &Place<'_>) -> Option<Vec<ConfigReader>> {
    let path = place.child(RUNNING);
    let nodes = place.names_below(RUNNING).iter().map(|name| (name, join(&path, name)));
    let nodes: Vec<_> = nodes.map(|(name, path)| (name, place.view.data(&path), path)).collect();
    let nodes = nodes.into_iter().filter(|(.., path)| !place.view.was_deleted(path));
    let nodes: Vec<_> = nodes.map(|(name, data, _)| (name, data)).collect();
    let is_foreign =
        |data: &Data| data.stat.owner.is_none() || data.bytes.is_some() && applied(data).is_none();
    if !nodes.is_empty() && nodes.iter().all(|(_, data)| data.is_some_and(is_foreign)) {
        return None;
    }
    let readers = nodes.into_iter().filter(|(_, data)| data.is_none_or(|data| data.stat.owner.is_some()));
    Some(readers.map(|(id, data)| reader(place, id, data)).collect())
}

/// Describes a reader by its node.
fn reader(place: &Place<'_>, id: &str, data: Option<&Data>) -> ConfigReader {
    let applied = data.and_then(applied);
    ConfigReader {
        id: id.to_owned(),
        version: applied.map(|applied| applied.version),
        mzxid: applied.map(|applied| applied.mzxid),
        is_current: applied.map(|applied| applied.mzxid == place.stat.mzxid),
        since: data.map(|data| place.view.since(data.stat.modified)),
        session: data.and_then(|data| data.stat.owner),
    }
}

fn applied(data: &Data) -> Option<Applied> {
    Applied::parse(data.bytes.as_deref()?)
}
