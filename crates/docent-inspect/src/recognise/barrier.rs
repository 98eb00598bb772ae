use super::found::{Found, member_writers};
use super::members::{is_uuid, member};
use super::semaphore::is_hex_id;
use crate::nodes::Place;
use crate::report::{DoubleBarrier, Kind, Member, Recipe};
use docent_locks::internals::READY;

/// A double barrier: members by ids alone, and `ready` once enough came.
pub(super) fn double_barrier(place: &Place<'_>) -> Option<Found> {
    let is_member = |name: &str| is_uuid(name) || is_hex_id(name);
    if !place.names.iter().all(|name| name == READY || is_member(name)) {
        return None;
    }
    let is_ready = place.has(READY);
    // Instances have such names, too, and services may be static: members are ephemeral and hold no JSON.
    let is_ephemeral = |name: &str| place.data(name).is_some_and(|data| data.stat.owner.is_some());
    let is_json = |name: &str| {
        let bytes = place.data(name).and_then(|data| data.bytes.as_ref());
        bytes.is_some_and(|bytes| bytes.starts_with(b"{"))
    };
    let sample: Vec<_> = place.sample().filter(|name| *name != READY).collect();
    let members_alone: Vec<_> = sample.iter().map(|name| is_ephemeral(name) && !is_json(name)).collect();
    if members_alone.into_iter().any(|is_member| !is_member) {
        return None;
    }
    let names = place.names.iter().filter(|name| *name != READY);
    let members: Vec<Member> = names.map(|name| member(place, name)).collect();
    let may_be = (!is_ready).then_some(Kind::Membership);
    let writers = member_writers(&members);
    let barrier = DoubleBarrier { is_ready, members };
    Some(Found::new(Recipe::DoubleBarrier(barrier)).by(writers).may_be(may_be))
}
