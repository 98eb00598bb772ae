use super::found::Found;
use crate::nodes::Place;
use crate::report::{ConfigReport, EarlierValue, Recipe, Writer};
use docent_config::internals::{HISTORY, revision};

/// Recognises a configuration by its history.
pub(super) fn config(place: &Place<'_>) -> Option<Found> {
    if !place.has(HISTORY) {
        return None;
    }
    let names = place.folder(HISTORY).map(|folder| folder.names.as_slice()).unwrap_or_default();
    let is_revision = |name: &String| revision(name).is_some();
    if !names.is_empty() && !names.iter().any(is_revision) {
        return None;
    }
    // Names sort in the order of the values.
    let history = names.iter().rev().filter_map(|name| revision(name)).map(|revision| EarlierValue {
        mzxid: revision.mzxid,
        version: revision.version,
        modified: revision.modified,
    });
    let config = ConfigReport {
        version: place.stat.version,
        size: place.stat.data_length,
        modified: place.modified(),
        history: history.collect(),
    };
    Some(Found::new(Recipe::Config(config)).by([Writer::Docent]))
}
