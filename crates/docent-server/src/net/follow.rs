use super::entrance::Entrance;
use super::listener::Listener;
use super::membership::Membership;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Task of a follower. It accepts links, relays the sessions that it received something from, and stops
/// serving some time after it was cut off.
pub(crate) struct Follow<L> {
    // Dropped in this order: the listener stops before the present links are cut.
    pub(crate) listener: L,
    pub(crate) entrance: Entrance,
    pub(crate) membership: Membership,
    pub(crate) relay_ms: i64,
    /// Notified when the follower is cut off.
    pub(crate) changed: Arc<Notify>,
    pub(crate) stop: CancellationToken,
}

pub(crate) async fn follow<L: Listener>(mut follow: Follow<L>) {
    let (hub, id) = (Arc::clone(&follow.membership.hub), follow.membership.id);
    let mut next_relay = hub.clock.now_ms().saturating_add(follow.relay_ms);
    loop {
        let gives_up_at = hub.lock().members.gives_up_at(id);
        let next = gives_up_at.map_or(next_relay, |at| at.min(next_relay));
        // The fixed order makes simulation runs reproducible.
        tokio::select! {
            biased;
            () = follow.stop.cancelled() => break,
            () = follow.changed.notified() => {}
            () = hub.clock.sleep_until(next) => {
                let now = hub.clock.now_ms();
                let mut ensemble = hub.lock();
                if gives_up_at.is_some_and(|at| at <= now) && ensemble.members.gives_up_at(id) == gives_up_at {
                    ensemble.give_up(id);
                }
                if next_relay <= now {
                    ensemble.relay(id, now);
                    next_relay = next_relay.saturating_add(follow.relay_ms).max(now + 1);
                }
            }
            () = follow.entrance.admit(&mut follow.listener) => {}
        }
    }
}
