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
    let (tickets, turns) = (below(&leases, PERMITS), below(&locks, MUTEX));
    let writers = writers(&tickets).into_iter().chain(writers(&turns));
    let out = out(&tickets, &turns, limit);
    let (permits, waiters) = standing(tickets, turns, out);
    let semaphore = Semaphore { limit, permits, waiters };
    Some(Found::new(Recipe::Semaphore(semaphore)).by(writers))
}

/// Number of the tickets that are permits: those within the limit. Without a limit the last one waits when it
/// came after the first turn, of the same session: a turn is given back once its permits are held.
fn out(tickets: &[Contender], turns: &[Contender], limit: Option<u32>) -> usize {
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

/// Those who hold the first `out` tickets, and those who wait: with a ticket, or for their turn.
fn standing(
    mut tickets: Vec<Contender>,
    mut turns: Vec<Contender>,
    out: usize,
) -> (Vec<Contender>, Vec<Contender>) {
    let mut beyond = tickets.split_off(out);
    // The one that has the turn has its tickets for permits already, and is one waiter with all of them.
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
    let semaphore = Semaphore { limit: None, permits: held(permits), waiters: Vec::new() };
    Some(Found::new(Recipe::Semaphore(semaphore)).by(writers))
}

/// Permits are held side by side.
fn held(mut permits: Vec<Contender>) -> Vec<Contender> {
    for permit in &mut permits {
        (permit.holds, permit.waits_for) = (true, None);
    }
    permits
}

/// Who has a turn, or a ticket beyond the limit, waits for any of the permits.
fn waiting(mut waiters: Vec<Contender>) -> Vec<Contender> {
    for waiter in &mut waiters {
        (waiter.holds, waiter.held, waiter.role) = (false, None, Role::Shared);
    }
    waiters
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
