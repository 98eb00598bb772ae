use super::contenders::by_identity;
use super::found::{Found, member_writers};
use super::semaphore::is_hex_id;
use crate::nodes::{Place, agree};
use crate::report::{Kind, Member, Membership, NodeText, Recipe, Writer};

/// Text after the id in the names of kazoo's party.
const PARTY: &str = "__party__";

/// Number of digits that the servers append.
const DIGITS: usize = 10;

/// Recognises members of a group: ephemeral nodes without a number. The sample decides whether all nodes are
/// read.
pub(super) fn membership(place: &Place<'_>) -> Option<Found> {
    let is_member = |name: &str| match (is_kazoo_member(name), is_numbered(name)) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => place.data(name).map(|data| data.stat.owner.is_some()),
    };
    // Request all, so that they are read in one round.
    let sample: Vec<_> = place.sample().map(is_member).collect();
    if !agree(&sample) {
        return None;
    }
    let members = members(place);
    if !agree(&members.iter().map(|member| is_member(&member.name)).collect::<Vec<_>>()) {
        return None;
    }
    let is_uuid = |member: &Member| is_uuid(&member.name) || is_hex_id(&member.name);
    let may_be = members.iter().all(is_uuid).then_some(Kind::DoubleBarrier);
    let writers = member_writers(&members);
    Some(Found::new(Recipe::Membership(Membership { members })).by(writers).may_be(may_be))
}

/// Returns all children as members, except those that were deleted meanwhile.
pub(super) fn members(place: &Place<'_>) -> Vec<Member> {
    let members = place.names.iter().map(|name| member(place, name));
    members.filter(|member| !place.was_deleted(&member.name)).collect()
}

/// Describes a member by its node.
pub(super) fn member(place: &Place<'_>, name: &str) -> Member {
    let data = place.data(name);
    let bytes = data.and_then(|data| data.bytes.clone());
    let writer = by_identity(bytes.as_deref());
    let stat = data.map(|data| &data.stat);
    Member {
        name: name.to_owned(),
        id: id(name).to_owned(),
        writer: match writer {
            Writer::Docent => Writer::Docent,
            _ if is_kazoo_member(name) || is_hex_id(name) => Writer::Kazoo,
            writer => writer,
        },
        data: bytes.filter(|bytes| !bytes.is_empty()).map(NodeText::new),
        since: stat.map(|stat| place.view.since(stat.created)),
        session: stat.and_then(|stat| stat.owner),
    }
}

/// Returns the id in the name of a member: the part after the digits of kazoo's shallow party, otherwise the
/// name.
fn id(name: &str) -> &str {
    docent_locks::internals::member_identity(name).unwrap_or(name)
}

fn is_kazoo_member(name: &str) -> bool {
    let is_party = name.strip_suffix(PARTY).is_some_and(is_hex_id);
    is_party || docent_locks::internals::member_identity(name).is_some()
}

fn is_numbered(name: &str) -> bool {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    digits >= DIGITS && !is_hex_id(name) && !is_uuid(name)
}

/// Returns true for a UUID with its hyphens.
pub(super) fn is_uuid(name: &str) -> bool {
    let hyphens = [8, 13, 18, 23];
    name.len() == 36
        && name.bytes().enumerate().all(|(index, byte)| {
            if hyphens.contains(&index) { byte == b'-' } else { byte.is_ascii_hexdigit() }
        })
}
