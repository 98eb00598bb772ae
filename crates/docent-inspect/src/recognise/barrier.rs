use super::found::{Found, member_writers};
use super::members::{is_uuid, member};
use super::semaphore::is_hex_id;
use crate::nodes::{Data, Place, agree};
use crate::report::{DoubleBarrier, Kind, Member, Recipe};
use docent_locks::internals::READY;

/// Recognises a double barrier: members whose names are only ids, and `ready` once enough have entered.
pub(super) fn double_barrier(place: &Place<'_>) -> Option<Found> {
    let is_member = |name: &str| is_uuid(name) || is_hex_id(name);
    if !place.names.iter().all(|name| name == READY || is_member(name)) {
        return None;
    }
    let is_ready = place.has(READY);
    // Instances may have such names too, and services may be static. Members are ephemeral and hold no JSON.
    let is_alone = |data: &Data| {
        let is_json = data.bytes.as_ref().is_some_and(|bytes| bytes.starts_with(b"{"));
        data.stat.owner.is_some() && !is_json
    };
    let sample = place.sample().filter(|name| *name != READY);
    let sample: Vec<_> = sample.map(|name| place.data(name).map(is_alone)).collect();
    if !agree(&sample) {
        return None;
    }
    let names = place.names.iter().filter(|name| *name != READY);
    let members = names.map(|name| member(place, name));
    let members: Vec<Member> = members.filter(|member| !place.was_deleted(&member.name)).collect();
    let may_be = (!is_ready).then_some(Kind::Membership);
    let writers = member_writers(&members);
    let barrier = DoubleBarrier { is_ready, members };
    Some(Found::new(Recipe::DoubleBarrier(barrier)).by(writers).may_be(may_be))
}
