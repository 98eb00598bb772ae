use crate::nodes::{Data, Place};
use crate::report::{Contender, NodeText, Writer};
use docent_core::recipe::ContenderName;
use docent_core::recipe::curator::is_revocation;
use docent_core::{ClientIdentity, Fence, Role};
use std::net::IpAddr;

/// Markers in the names of contenders, each with its role.
pub(super) type Markers = [(&'static str, Role)];

/// Length of the prefix that the Go client writes before a marker: `_c_`, 32 digits without hyphens, and `-`.
const GO_ID: usize = 36;

/// A contender's ticket, parsed from its name.
struct Ticket<'a> {
    name: &'a str,
    parsed: ContenderName<'a>,
    role: Role,
    /// True for kazoo's tickets, which form a separate line.
    is_kazoo: bool,
    data: Option<&'a Data>,
}

/// Returns the contenders below a node that have one of the `markers`, in queue order.
///
/// If contenders of two libraries use one path, each library's contenders form a separate line. Both may hold
/// the lock then, as these libraries behave by default.
pub(super) fn contenders(place: &Place<'_>, markers: &Markers) -> Vec<Contender> {
    let mut tickets: Vec<_> = place.names.iter().filter_map(|name| ticket(name, markers)).collect();
    // Read in this order, so that a limit omits the last ones.
    tickets.sort_unstable_by_key(|ticket| (ticket.parsed.number, ticket.role));
    for ticket in &mut tickets {
        ticket.data = place.data(ticket.name);
    }
    tickets.retain(|ticket| !place.was_deleted(ticket.name));
    if tickets.iter().any(|ticket| ticket.parsed.is_unordered()) {
        tickets.sort_by_key(created);
    }
    let waits_for = blockers(&tickets);
    tickets.iter().zip(waits_for).map(|(ticket, blocker)| contender(place, ticket, blocker)).collect()
}

/// Returns the transaction that created a ticket, which gives the order if the numbers do not.
fn created(ticket: &Ticket<'_>) -> i64 {
    ticket.data.map_or(i64::MAX, |data| data.stat.czxid)
}

fn ticket<'a>(name: &'a str, markers: &Markers) -> Option<Ticket<'a>> {
    let parsed = ContenderName::parse(name)?;
    let (_, role) = *markers.iter().find(|(marker, _)| *marker == parsed.marker)?;
    Some(Ticket { name, parsed, role, is_kazoo: is_kazoo(parsed.marker), data: None })
}

fn is_kazoo(marker: &str) -> bool {
    matches!(marker, "__lock__" | "__rlock__")
}

/// Returns, for each ticket, the name of the nearest ticket ahead that must go first: any ticket for a
/// writer, a writer for a reader.
fn blockers(tickets: &[Ticket<'_>]) -> Vec<Option<String>> {
    // The last ticket and the last writer so far, for each of the two lines.
    let mut last: [(Option<&str>, Option<&str>); 2] = Default::default();
    let mut waits_for = Vec::new();
    for ticket in tickets {
        let (any, writer) = &mut last[usize::from(ticket.is_kazoo)];
        let is_writer = ticket.role == Role::Exclusive;
        let blocker = if is_writer { any.replace(ticket.name) } else { *writer };
        *any = Some(ticket.name);
        *writer = if is_writer { *any } else { *writer };
        waits_for.push(blocker.map(str::to_owned));
    }
    waits_for
}

fn contender(place: &Place<'_>, ticket: &Ticket<'_>, waits_for: Option<String>) -> Contender {
    let holds = waits_for.is_none();
    let writer = writer(&ticket.parsed, ticket.data);
    let number = Some(ticket.parsed.number);
    let contender = Contender { waits_for, writer, ..holder(place, ticket.name, ticket.data) };
    let held = contender.held.filter(|_| holds && writer == Writer::Docent);
    Contender { number, role: ticket.role, holds, held, ..contender }
}

/// Describes a holder without a number by its node.
pub(super) fn holder(place: &Place<'_>, name: &str, data: Option<&Data>) -> Contender {
    let bytes = data.and_then(|data| data.bytes.as_ref());
    let is_revoked = bytes.is_some_and(|bytes| is_revocation(bytes));
    let identity = bytes.filter(|bytes| !bytes.is_empty() && !is_revoked).cloned().map(NodeText::new);
    let stat = data.map(|data| &data.stat);
    let changed = stat.filter(|stat| stat.modified > stat.created && !is_revoked);
    Contender {
        name: name.to_owned(),
        number: None,
        role: Role::Shared,
        holds: true,
        waits_for: None,
        since: stat.map(|stat| place.view.since(stat.created)),
        held: changed.map(|stat| place.view.since(stat.modified)),
        fence: stat.and_then(|stat| Fence::try_from(stat.czxid).ok()),
        session: stat.and_then(|stat| stat.owner),
        client: identity.as_ref().and_then(NodeText::client),
        identity,
        is_revoked,
        writer: Writer::Kazoo,
    }
}

fn writer(name: &ContenderName<'_>, data: Option<&Data>) -> Writer {
    if is_kazoo(name.marker) {
        return Writer::Kazoo;
    }
    match by_identity(data.and_then(|data| data.bytes.as_deref())) {
        Writer::Docent => Writer::Docent,
        _ if name.id.len() == GO_ID && !name.id[..GO_ID - 1].contains('-') => Writer::GoZookeeper,
        writer => writer,
    }
}

/// Returns Docent or Curator, as far as the data of a node tells, because both use the same names.
pub(super) fn by_identity(data: Option<&[u8]>) -> Writer {
    match data.and_then(|data| std::str::from_utf8(data).ok()) {
        Some(text) if ClientIdentity::parse(text).is_some() => Writer::Docent,
        Some(text) if text.is_empty() || text.parse::<IpAddr>().is_ok() => Writer::Curator,
        _ => Writer::DocentOrCurator,
    }
}
