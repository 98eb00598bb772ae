use super::contenders::{Markers, contenders};
use super::found::{Found, writers};
use super::semaphore::kazoo_semaphore_of;
use crate::nodes::Place;
use crate::report::{Kind, Line, Recipe};
use docent_core::Role;

/// Contenders of a mutex: of Docent, Curator and the Go client, and of kazoo.
pub(super) const MUTEX: &Markers = &[("lock-", Role::Exclusive), ("__lock__", Role::Exclusive)];

/// Contenders of a read/write lock. kazoo's writers have the same names as contenders of its mutex.
const READ_WRITE: &Markers = &[
    ("__WRIT__", Role::Exclusive),
    ("__READ__", Role::Shared),
    ("__lock__", Role::Exclusive),
    ("__rlock__", Role::Shared),
];

/// Recognises a lock with readers, or with writers of the read/write layout.
pub(super) fn read_write_lock(place: &Place<'_>) -> Option<Found> {
    let marks = ["__WRIT__", "__READ__", "__rlock__"];
    if !place.names.iter().any(|name| marks.iter().any(|mark| name.contains(mark))) {
        return None;
    }
    let contenders = contenders(place, READ_WRITE);
    if contenders.is_empty() {
        return None;
    }
    let writers = writers(&contenders);
    Some(Found::new(Recipe::ReadWriteLock(Line { contenders })).by(writers))
}

/// Recognises a mutex. An election with the same names was recognised before this, if its ids identify it.
pub(super) fn mutex(place: &Place<'_>) -> Option<Found> {
    let contenders = contenders(place, MUTEX);
    if contenders.is_empty() {
        return None;
    }
    let kazoo_alone = contenders.iter().all(|contender| contender.name.contains("__lock__"));
    let writers = writers(&contenders);
    let found = Found::new(Recipe::Mutex(Line { contenders })).by(writers);
    if let Some(semaphore) = kazoo_semaphore_of(place) {
        return Some(found.part_of(semaphore));
    }
    let found = found.may_be([Kind::Election]);
    // What looks like kazoo's mutex may be a read/write lock that currently has only writers.
    Some(if kazoo_alone { found.may_be([Kind::ReadWriteLock]) } else { found })
}
