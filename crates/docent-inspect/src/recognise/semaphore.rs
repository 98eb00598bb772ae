use super::contenders::{Markers, contenders, holder};
use super::found::{Found, writers};
use super::lock::MUTEX;
use crate::nodes::Place;
use crate::report::{Contender, Kind, Recipe, Semaphore, Writer};
use docent_core::Role;
use docent_core::recipe::ContenderName;

/// Folder of the permits in the layout of Docent and Curator.
const LEASES: &str = "leases";

/// Folder of those who wait for their turn.
const LOCKS: &str = "locks";

/// Permits.
const PERMITS: &Markers = &[("lease-", Role::Shared)];

/// Text behind the path of kazoo's semaphore in the path of its turns.
const KAZOO_TURNS: &str = "-__lock__";

/// A semaphore of Docent, Curator or kazoo, or the folder of its permits.
pub(super) fn semaphore(place: &Place<'_>) -> Option<Found> {
    curator(place).or_else(|| leases(place)).or_else(|| kazoo(place))
}

fn curator(place: &Place<'_>) -> Option<Found> {
    if !place.has_only(&[LEASES, LOCKS]) || !is_used(place) {
        return None;
    }
    let limit = limit(place);
    let (leases, locks) = (place.child(LEASES), place.child(LOCKS));
    let below = |path: &str, markers| {
        let folder = place.view.folder(path);
        folder.map(|folder| contenders(&Place::new(place.view, path, folder), markers)).unwrap_or_default()
    };
    let permits = counted(below(&leases, PERMITS), limit);
    let mut waiters = below(&locks, MUTEX);
    // The one that has the turn has its tickets for permits already.
    if let Some(turn) = waiters.first()
        && permits.iter().any(|permit| !permit.holds && permit.session == turn.session)
    {
        waiters.remove(0);
    }
    let writers = writers(&permits).into_iter().chain(writers(&waiters));
    let semaphore = Semaphore { limit, permits, waiters: waiting(waiters) };
    Some(Found::new(Recipe::Semaphore(semaphore)).by(writers))
}

/// True when one of the folders has tickets, or the node has a limit: other folders may have these names.
fn is_used(place: &Place<'_>) -> bool {
    let has = |folder, marker| {
        let names = place.names.iter().any(|name| name == folder).then(|| place.folder(folder)).flatten();
        names.is_some_and(|folder| {
            let is = |name: &String| ContenderName::parse(name).is_some_and(|name| name.marker == marker);
            folder.names.iter().any(is)
        })
    };
    has(LEASES, "lease-") || place.has(LEASES) && (has(LOCKS, "lock-") || limit(place).is_some())
}

/// The folder of the permits, when that is looked at itself.
fn leases(place: &Place<'_>) -> Option<Found> {
    let permits = contenders(place, PERMITS);
    if permits.is_empty() {
        return None;
    }
    let writers = writers(&permits);
    let semaphore = Semaphore { limit: None, permits: counted(permits, None), waiters: Vec::new() };
    Some(Found::new(Recipe::Semaphore(semaphore)).by(writers))
}

/// Permits are held up to the limit; who is beyond it waits for any of them.
fn counted(mut permits: Vec<Contender>, limit: Option<u32>) -> Vec<Contender> {
    for (index, permit) in permits.iter_mut().enumerate() {
        permit.holds = limit.is_none_or(|limit| index < limit as usize);
        permit.waits_for = None;
    }
    permits
}

/// Turns are waited for, none is held: who has the turn waits for a permit.
fn waiting(mut turns: Vec<Contender>) -> Vec<Contender> {
    for turn in &mut turns {
        (turn.holds, turn.held, turn.role) = (false, None, Role::Shared);
    }
    turns
}

/// The limit in the node, as kazoo and Docent keep it.
fn limit(place: &Place<'_>) -> Option<u32> {
    std::str::from_utf8(place.own_data()?).ok()?.parse().ok()
}

fn kazoo(place: &Place<'_>) -> Option<Found> {
    let limit = limit(place)?;
    if !place.names.iter().all(|name| is_hex_id(name)) {
        return None;
    }
    let permits = place.names.iter().map(|name| holder(place, name, place.data(name)));
    let mut permits: Vec<_> = permits.map(|permit| Contender { held: None, ..permit }).collect();
    permits.sort_by_key(|permit| permit.fence);
    let turns = format!("{}{KAZOO_TURNS}", place.path);
    let folder = place.view.folder(&turns);
    let waiters = folder.map(|folder| contenders(&Place::new(place.view, &turns, folder), MUTEX));
    let semaphore = Semaphore { limit: Some(limit), permits, waiters: waiting(waiters.unwrap_or_default()) };
    Some(Found::new(Recipe::Semaphore(semaphore)).by([Writer::Kazoo]).may_be([Kind::DoubleBarrier]))
}

/// True for 32 hexadecimal digits, as kazoo names nodes.
pub(super) fn is_hex_id(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}
