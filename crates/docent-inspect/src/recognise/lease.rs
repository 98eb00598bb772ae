use super::found::Found;
use crate::nodes::Place;
use crate::report::{Recipe, TimedLease, Writer};
use docent_locks::internals::LeaseHolder;

/// Node that names the holder of the lease.
const HOLDER: &str = "lease_holder";

/// Recognises a timed lease.
pub(super) fn timed_lease(place: &Place<'_>) -> Option<Found> {
    if !place.has(HOLDER) {
        return None;
    }
    let bytes = place.data(HOLDER).and_then(|data| data.bytes.as_ref());
    let holder = bytes.and_then(|bytes| LeaseHolder::decode(bytes));
    let end = holder.as_ref().map(|holder| holder.end);
    let is_over = end.map(|end| end < place.view.now());
    let writer = holder.as_ref().map_or(Writer::Kazoo, |holder| {
        docent_core::ClientIdentity::parse(&holder.identity).map_or(Writer::Kazoo, |_| Writer::Docent)
    });
    let lease = TimedLease { holder: holder.map(|holder| holder.identity), end, is_over };
    Some(Found::new(Recipe::TimedLease(lease)).by([writer]))
}
