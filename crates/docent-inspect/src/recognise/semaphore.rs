use super::contenders::{Markers, contenders, holder};
use super::found::{Found, writers};
use super::lock::MUTEX;
use crate::nodes::Place;
use crate::report::{Contender, Kind, Recipe, Semaphore, Writer};
use docent_core::Role;
use docent_core::recipe::ContenderName;

/// Folder of the permits in the layout of Docent and Curator.
const LEASES: &str = "leases";

/// Folder of the contenders that wait for their turn.
const LOCKS: &str = "locks";

/// Permits.
const PERMITS: &Markers = &[("lease-", Role::Shared)];

/// Suffix that kazoo appends to a semaphore's path for the path of its turns.
const KAZOO_TURNS: &str = "-__lock__";

/// Recognises a semaphore of Docent, Curator or kazoo, or the folder of its permits.
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
    let (tickets, turns) = (below(&leases, PERMITS), below(&locks, MUTEX));
    let writers = writers(&tickets).into_iter().chain(writers(&turns));
    let permit_count = permit_count(&tickets, &turns, limit);
    let (permits, waiters) = split(tickets, turns, permit_count);
    let semaphore = Semaphore { limit, permits, waiters };
    Some(Found::new(Recipe::Semaphore(semaphore)).by(writers))
}

/// Returns the number of tickets that are permits: those within the limit. Without a limit, the last ticket
/// waits if it is newer than the first turn and of the same session, because a turn is given back once its
/// permits are held.
fn permit_count(tickets: &[Contender], turns: &[Contender], limit: Option<u32>) -> usize {
    let waits = |ticket: &Contender, turn: &Contender| {
        ticket.session.is_some() && ticket.session == turn.session && ticket.fence > turn.fence
    };
    match limit {
        Some(limit) => tickets.len().min(limit as usize),
        None => match (tickets.last(), turns.first()) {
            (Some(ticket), Some(turn)) if waits(ticket, turn) => tickets.len() - 1,
            _ => tickets.len(),
        },
    }
}

/// Splits contenders into the holders of the first `permit_count` tickets, and those that wait with a ticket
/// or for their turn.
fn split(
    mut tickets: Vec<Contender>,
    mut turns: Vec<Contender>,
    permit_count: usize,
) -> (Vec<Contender>, Vec<Contender>) {
    let mut beyond = tickets.split_off(permit_count);
    // The contender that has the turn already has its tickets for permits. It is one waiter with all of them.
    let first = turns.first().and_then(|turn| beyond.iter().position(|one| one.session == turn.session));
    if let Some(first) = first {
        let turn = turns.remove(0);
        beyond[first].since = turn.since;
        let name = beyond[first].name.clone();
        beyond.retain(|one| one.session != turn.session || one.name == name);
    }
    beyond.extend(turns);
    (held(tickets), waiting(beyond))
}

/// Returns true if one of the folders has tickets, or the node has a limit: unrelated folders may have these
/// names.
fn is_used(place: &Place<'_>) -> bool {
    let has = |folder, marker| {
        let is = |name: &String| ContenderName::parse(name).is_some_and(|name| name.marker == marker);
        place.names_below(folder).iter().any(is)
    };
    has(LEASES, "lease-") || place.has(LEASES) && (has(LOCKS, "lock-") || limit(place).is_some())
}

/// Recognises the folder of the permits if it is inspected itself.
fn leases(place: &Place<'_>) -> Option<Found> {
    let permits = contenders(place, PERMITS);
    if permits.is_empty() {
        return None;
    }
    let writers = writers(&permits);
    let semaphore = Semaphore { limit: None, permits: held(permits), waiters: Vec::new() };
    Some(Found::new(Recipe::Semaphore(semaphore)).by(writers))
}

/// Marks permits as held concurrently.
fn held(mut permits: Vec<Contender>) -> Vec<Contender> {
    for permit in &mut permits {
        (permit.holds, permit.waits_for) = (true, None);
    }
    permits
}

/// Marks contenders with a turn, or with a ticket beyond the limit, as waiting for any permit.
fn waiting(mut waiters: Vec<Contender>) -> Vec<Contender> {
    for waiter in &mut waiters {
        (waiter.holds, waiter.held, waiter.role) = (false, None, Role::Shared);
    }
    waiters
}

/// Returns the limit in the node, as kazoo and Docent store it.
fn limit(place: &Place<'_>) -> Option<u32> {
    std::str::from_utf8(place.own_data()?).ok()?.parse().ok()
}

/// Returns the limit of kazoo's semaphore.
fn kazoo_limit(place: &Place<'_>) -> Option<u32> {
    limit(place).filter(|_| place.names.iter().all(|name| is_hex_id(name)))
}

/// Returns the path of kazoo's semaphore whose contenders wait for their turn at a place.
pub(super) fn kazoo_semaphore_of(turns: &Place<'_>) -> Option<String> {
    let path = turns.path.strip_suffix(KAZOO_TURNS)?;
    let semaphore = Place::new(turns.view, path, turns.view.folder(path)?);
    kazoo_limit(&semaphore).map(|_| path.to_owned())
}

fn kazoo(place: &Place<'_>) -> Option<Found> {
    let limit = kazoo_limit(place)?;
    let permits = place.names.iter().map(|name| holder(place, name, place.data(name)));
    let mut permits: Vec<_> = permits.map(|permit| Contender { held: None, ..permit }).collect();
    permits.sort_by_key(|permit| permit.fence);
    let turns = format!("{}{KAZOO_TURNS}", place.path);
    let folder = place.view.folder(&turns);
    let waiters = folder.map(|folder| contenders(&Place::new(place.view, &turns, folder), MUTEX));
    let semaphore = Semaphore { limit: Some(limit), permits, waiters: waiting(waiters.unwrap_or_default()) };
    Some(Found::new(Recipe::Semaphore(semaphore)).by([Writer::Kazoo]).may_be([Kind::DoubleBarrier]))
}

/// Returns true for 32 hexadecimal digits, as in kazoo's node names.
pub(super) fn is_hex_id(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}
