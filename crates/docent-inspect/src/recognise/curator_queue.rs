use super::found::Found;
use super::items::{CuratorName, are_times};
use super::queue::{claims, item, time, without_claims};
use crate::nodes::{Folder, Place, join};
use crate::report::{Queue, QueueLayout, Recipe, Writer};
use std::collections::HashSet;

/// Maximum number of folders to search for claims.
const MAX_CANDIDATES: usize = 4;

/// Recognises one of Curator's queues, or the claims of one.
pub(super) fn curator_queue(place: &Place<'_>) -> Option<Found> {
    let mut items = names(place.names);
    if items.is_empty() {
        return None;
    }
    let has_times = are_times(&items);
    let due = |item: &CuratorName<'_>| item.time().filter(|_| has_times);
    items.sort_unstable_by_key(|item| (due(item), item.priority, item.number));
    if is_claimed(place, place.path, &items[0]) {
        return Some(found(folder_of_claims(place)));
    }
    let claimed_at = folder_with_claims(place);
    let is_due = |item: &CuratorName<'_>| due(item).and_then(time).is_none_or(|due| due <= place.view.now());
    let delayed = items.iter().filter(|item| !is_due(item));
    let next_due = delayed.clone().next().and_then(due).and_then(time);
    let delayed = delayed.count();
    let (path, names) = claimed_at.as_ref().map_or(("", &[][..]), |(path, folder)| (path, &folder.names));
    let taken: HashSet<_> = names.iter().map(String::as_str).collect();
    let head = items.iter().find(|item| is_due(item) && !taken.contains(item.text));
    let queue = Queue {
        delayed,
        next_due,
        head: head.map(|head| item(place.view, place.path, head.text, head.priority.map(i64::from))),
        claimed: claimed_at.is_some().then_some(names.len()),
        claims: claims(place.view, path, names),
        ..without_claims(QueueLayout::Curator, items.len())
    };
    Some(found(queue))
}

fn found(queue: Queue) -> Found {
    Found::new(Recipe::Queue(queue)).by([Writer::Curator])
}

fn names(names: &[String]) -> Vec<CuratorName<'_>> {
    names.iter().filter_map(|name| CuratorName::parse(name)).collect()
}

/// Returns true for a claim: it has the name of its item and is ephemeral, unlike items.
fn is_claimed(place: &Place<'_>, folder: &str, name: &CuratorName<'_>) -> bool {
    place.view.data(&join(folder, name.text)).is_some_and(|data| data.stat.owner.is_some())
}

/// Describes the folder of the claims itself.
fn folder_of_claims(place: &Place<'_>) -> Queue {
    Queue {
        claimed: Some(place.names.len()),
        claims: claims(place.view, place.path, place.names),
        ..without_claims(QueueLayout::CuratorClaims, 0)
    }
}

/// Returns the folder of the claims, if it currently has one that can be attributed to this queue. It is a
/// child of the queue's node, or a sibling whose name starts with the queue's name and contains `lock`.
fn folder_with_claims<'a>(place: &Place<'a>) -> Option<(String, &'a Folder)> {
    let children = place.names.iter().filter(|name| CuratorName::parse(name).is_none());
    let children = children.take(MAX_CANDIDATES).map(|name| place.child(name));
    // Request all, so that they are read in one round.
    let folders: Vec<_> =
        children.chain(siblings(place)).map(|path| (place.view.folder(&path), path)).collect();
    folders.into_iter().find_map(|(folder, path)| {
        let folder = folder?;
        let items = names(&folder.names);
        let is_all = items.len() == folder.names.len();
        (is_all && is_claimed(place, &path, items.first()?)).then_some((path, folder))
    })
}

/// Returns sibling paths of the queue that may hold its claims.
fn siblings(place: &Place<'_>) -> Vec<String> {
    let Some((parent, name)) = place.path.rsplit_once('/').filter(|(_, name)| !name.is_empty()) else {
        return Vec::new();
    };
    let parent = if parent.is_empty() { "/" } else { parent };
    let names = place.view.folder(parent).map(|folder| folder.names.as_slice()).unwrap_or_default();
    let is_named = |other: &&String| {
        other.strip_prefix(name).is_some_and(|rest| rest.to_ascii_lowercase().contains("lock"))
    };
    names.iter().filter(is_named).take(MAX_CANDIDATES).map(|name| join(parent, name)).collect()
}
