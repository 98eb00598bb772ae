use super::contenders::contenders;
use super::found::{Found, member_writers, writers};
use super::lock::MUTEX;
use super::members::members;
use crate::nodes::Place;
use crate::report::{Partition, PartitionItem, Recipe};
use docent_locks::internals::member_identity;

/// Folder of the members.
const PARTY: &str = "party";

/// Folder of the items' locks.
const LOCKS: &str = "locks";

/// Recognises a set of items that members share.
pub(super) fn partition(place: &Place<'_>) -> Option<Found> {
    if !place.has(PARTY) || !place.has_only(&[PARTY, LOCKS]) {
        return None;
    }
    let party = place.child(PARTY);
    let folder = place.view.folder(&party)?;
    // An empty folder of this name alone may have any meaning.
    if folder.names.is_empty() && !place.has(LOCKS) {
        return None;
    }
    if !folder.names.iter().all(|name| member_identity(name).is_some()) {
        return None;
    }
    let party = Place::new(place.view, &party, folder);
    let members = members(&party);
    let items = if place.has(LOCKS) { items(place) } else { Vec::new() };
    let holders: Vec<_> = items.iter().filter_map(|item| item.holder.clone()).collect();
    let writers = member_writers(&members).into_iter().chain(writers(&holders));
    Some(Found::new(Recipe::Partition(Partition { members, items })).by(writers))
}

fn items(place: &Place<'_>) -> Vec<PartitionItem> {
    let locks = place.child(LOCKS);
    let Some(folder) = place.view.folder(&locks) else { return Vec::new() };
    let locks = Place::new(place.view, &locks, folder);
    let item = |name: &String| PartitionItem {
        name: name.clone(),
        holder: locks.folder(name).and_then(|folder| {
            let path = locks.child(name);
            contenders(&Place::new(locks.view, &path, folder), MUTEX).into_iter().next()
        }),
    };
    locks.names.iter().map(item).collect()
}
