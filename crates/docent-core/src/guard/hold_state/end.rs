//! How a `HoldState` ends: released or lost.

use super::HoldState;
use crate::guard::LostReason;
use crate::session::Lane;
use crate::time::{Timestamp, seconds, sleep_until};
use docent_proto::Request;
use std::future::pending;
use std::sync::Weak;
use std::time::Duration;
use tokio::runtime::Handle;

/// End of a guard: released or lost, whichever happened first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Released,
    /// The reason, and the time at which the loss was noticed.
    Lost(LostReason, Timestamp),
}

impl HoldState {
    /// Marks the guard lost, unless it was already released. Only the first reason is stored; returns that
    /// reason.
    pub(crate) fn mark_lost(&self, reason: LostReason) -> LostReason {
        // Mark the lender first, because a lost hold is not lent again. The lender then marks this hold lost
        // too.
        let reason = match &self.lender {
            Some(lender) if !self.has_ended() => lender.mark_lost(reason),
            _ => reason,
        };
        if self.end.set(End::Lost(reason, self.generation.clock.now())).is_ok() {
            let lent = self.lent();
            let current = lent.as_ref().and_then(Weak::upgrade).filter(|_| !planted!(TurnAfterLoss));
            if let Some(lent) = current {
                lent.mark_lost(reason);
            }
            self.token.cancel();
            self.sets().iter().for_each(|(_, token)| token.cancel());
            if lent.is_none() {
                self.generation.held.count_loss();
                self.log_loss(reason);
            }
            self.ended(Some(reason));
            if reason == LostReason::LeaseExpired && !self.is_lent() {
                if planted!(SessionClosedAtLoss) {
                    std::mem::forget(self.generation.session.submit(Request::CloseSession, Lane::Cleanup));
                }
                // The session, and with it the node, may live on. The holder's work gets a margin to stop.
                // Then the node is deleted, so that the next holder gets its turn (decision 3).
                let margin =
                    if planted!(NodeDeletedAtLoss) { Duration::ZERO } else { self.generation.lease.margin() };
                self.generation.cleanup.delete_lost(&self.node, margin);
            }
        }
        match self.end.get() {
            Some(End::Lost(reason, _)) => *reason,
            _ => reason,
        }
    }

    /// Marks the guard lost because its node was deleted. A paused process may receive that event only after
    /// its lease expired. Once the longest [grace](Self::grace_end) has passed too, the reason is the lease.
    pub(crate) fn mark_deleted(&self) {
        let (now, lease) = (self.generation.clock.now(), &self.generation.lease);
        let is_past_grace = lease.lapsed_at(self.mark).is_none_or(|end| now >= end + lease.margin());
        self.mark_lost(if is_past_grace { self.generation.lost_reason() } else { LostReason::NodeDeleted });
    }

    fn log_loss(&self, reason: LostReason) {
        let (now, lease) = (self.generation.clock.now(), &self.generation.lease);
        // A delay of at least one heartbeat interval shows that the guard was not checked in time.
        let late = lease.lapsed_at(self.mark).map(|end| now.since(end));
        let late = late.filter(|late| *late >= lease.timing().pulse()).map(seconds);
        // Event: A guard (lock, permit, leadership or delivery) was lost before it was released. The field
        // `reason` says why, and `noticed_late_seconds` how long after the end of its lease the loss was
        // noticed; another client may have held the place in that time.
        // Action: If `noticed_late_seconds` is present, check what was written under this fence. Otherwise
        // see the field `reason`.
        tracing::warn!(
            target: "docent::lock",
            client = %self.generation.client,
            recipe = self.recipe.kind.label(),
            path = %self.path(),
            fence = %self.fence,
            generation = self.generation.number,
            held_seconds = seconds(now.since(self.since)),
            noticed_late_seconds = late,
            %reason,
            "guard is lost"
        );
    }

    /// Marks the guard released. The client deletes its node itself, which is no loss.
    pub(crate) fn release(&self) {
        let _ = self.hand_over();
    }

    /// Like [`release`](Self::release), but returns the reason if the guard was already lost. Both happen in
    /// one step, because a guard that continues in this one's place may
    /// [take over its token](Self::pass_token), and no later loss of this guard may cancel that token.
    pub(crate) fn hand_over(&self) -> Result<(), LostReason> {
        match self.end.set(End::Released) {
            Ok(()) => {
                self.lent().as_ref().and_then(Weak::upgrade).into_iter().for_each(|lent| lent.take_back());
                self.ended(None);
                Ok(())
            }
            Err(_) => match self.end.get() {
                Some(End::Lost(reason, _)) => Err(*reason),
                _ => Ok(()),
            },
        }
    }

    /// Releases the guard on behalf of the hold that lent it, unless it has ended. All handles that share the
    /// guard are notified.
    pub(super) fn take_back(&self) {
        if self.end.set(End::Released).is_ok() {
            self.lent().as_ref().and_then(Weak::upgrade).into_iter().for_each(|lent| lent.take_back());
            self.ended(None);
            self.token.cancel();
            self.sets().iter().for_each(|(_, token)| token.cancel());
        }
    }

    /// Lets the loss of `heir` cancel this guard's token, after this guard was
    /// [handed over](Self::hand_over).
    pub(crate) fn pass_token(&self, heir: &Self) {
        // The token is never removed again, because no `HoldSet` has the number 0.
        heir.join(0, &self.token);
    }

    /// Like [`release`](Self::release), and cancels the token to notify all handles that share the guard.
    pub(crate) fn give_up(&self) {
        self.release();
        self.token.cancel();
    }

    /// Returns the time until which work under the lost guard may still be polled: `grace` after its lease
    /// ran out, at most a margin. Returns `None` if another holder may already have the place, or if another
    /// lease has begun since.
    pub(crate) fn grace_end(&self, grace: Duration) -> Option<Timestamp> {
        match self.end.get() {
            Some(End::Lost(LostReason::LeaseExpired, noticed)) => {
                // The driver may have accepted an acknowledgement as in time and moved the end of the lease
                // after this guard was lost. The earlier of the two times applies.
                let end = self.generation.lease.lapsed_at(self.mark)?.min(*noticed);
                Some(end + grace.min(self.generation.lease.margin()))
            }
            _ => None,
        }
    }

    pub(super) fn ended(&self, lost: Option<LostReason>) {
        if !self.is_lent() {
            self.generation.held.ended();
        }
        if let Some(gauge) = self.gauge.get() {
            gauge.set(0.0);
        }
        if self.lent().is_some() {
            return;
        }
        let held = self.generation.clock.now().since(self.since);
        self.recipe.metrics.ended(held, lost.map(LostReason::label));
    }

    /// Returns the reason why the guard was lost, or `None` if it was not.
    pub(crate) fn lost_reason(&self) -> Option<LostReason> {
        match self.end.get() {
            Some(End::Lost(reason, _)) => Some(*reason),
            _ => None,
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.end.get().is_some()
    }

    /// Resolves with the reason when the guard is lost, or released by another handle that shares it. It also
    /// resolves if the task that keeps the lease no longer runs.
    pub(crate) async fn lost(&self) -> LostReason {
        tokio::select! {
            biased;
            () = self.token.cancelled() => {}
            () = self.lapsed() => {}
        }
        match self.end.get() {
            Some(End::Lost(reason, _)) => *reason,
            // The token is cancelled when the guard is lost or given up.
            _ => LostReason::Released,
        }
    }

    /// Resolves with the reason when the guard is no longer certain: either it is lost, or the lease under
    /// which it was released has ended. This ends operations that are bound to the guard (decision 24). An
    /// operation in flight when the guard is released continues.
    pub(crate) async fn uncertain(&self) -> LostReason {
        let lost = async {
            self.token.cancelled().await;
            match self.lost_reason() {
                Some(reason) => reason,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            reason = lost => reason,
            reason = self.lease_lapsed() => self.mark_lost(reason),
        }
    }

    /// Resolves when the lease under which the guard began has run out, even if the guard was released in the
    /// meantime. Returns the reason for which the guard is, or would be, lost.
    pub(crate) async fn lease_lapsed(&self) -> LostReason {
        let (lease, clock) = (&self.generation.lease, self.generation.clock.as_ref());
        loop {
            // Subscribe before the check, so that no change is missed.
            let changed = lease.changed();
            if !lease.holds(self.mark, clock.now()) {
                return self.generation.lost_reason();
            }
            tokio::select! {
                () = changed => {}
                () = sleep_until(clock, lease.deadline()) => {}
            }
        }
    }

    /// Resolves when the lease has run out, using the clock and a timer of the waiting task itself, because
    /// the `Heartbeat` may be stuck on a blocked thread. Never resolves if the guard is released first.
    async fn lapsed(&self) {
        // Without a runtime there are no timers, and only the token reports the loss.
        while !self.has_ended() && Handle::try_current().is_ok() {
            let left = self.generation.lease.deadline().since(self.generation.clock.now());
            tokio::time::sleep(left).await;
            if !self.has_ended() && self.check_clock().is_err() {
                return;
            }
        }
        pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Client;
    use crate::cleanup::OwnedNode;
    use crate::client::RecipeKind;
    use crate::guard::Beginning;
    use std::sync::Arc;

    static KIND: RecipeKind = RecipeKind::new("lock", "acquire");
    const SECOND: Duration = Duration::from_secs(1);

    /// Returns a guard whose lease of 20 s, in a session of 30 s, runs out at `end`.
    fn lapsing(client: &Client, end: Timestamp) -> HoldState {
        let generation = client.shared().generation();
        let lease = &generation.lease;
        let then = end - SECOND * 20;
        lease.attached(SECOND * 30, then);
        lease.renew(then, then, then);
        let mark = lease.mark(end - SECOND).unwrap();
        let node = OwnedNode::by_name(Arc::clone(&generation), "/lock/a".to_owned(), 1);
        HoldState::new(
            Arc::clone(&generation),
            Arc::new(node),
            client.shared().recipe(&KIND),
            mark,
            Beginning::at_creation(),
            None,
        )
    }

    #[tokio::test]
    async fn a_grace_runs_from_the_end_that_was_noticed_also_if_the_lease_is_renewed_at_that_moment() {
        let client = Client::builder("127.0.0.1:1").build().unwrap();
        let generation = client.shared().generation();
        let (lease, now) = (&generation.lease, generation.clock.now());
        let held = lapsing(&client, now);
        assert_eq!(held.check(), Err(LostReason::LeaseExpired));
        assert_eq!(held.grace_end(SECOND), Some(now + SECOND));
        // The driver read its clock just before the end of the lease, and renewed the lease just after the
        // guard was lost.
        lease.renew(now - SECOND, now - SECOND, now - Duration::from_nanos(1));
        assert!(held.grace_end(SECOND) <= Some(generation.clock.now() + SECOND));
        assert_eq!(held.check(), Err(LostReason::LeaseExpired));
    }

    #[tokio::test]
    async fn a_deletion_received_after_the_grace_has_the_lease_as_its_reason() {
        // The grace is at most 10 s. Until it has passed, a deletion must end the work under it.
        let ages =
            [(1, LostReason::NodeDeleted), (9, LostReason::NodeDeleted), (11, LostReason::LeaseExpired)];
        for (age, reason) in ages {
            let client = Client::builder("127.0.0.1:1").build().unwrap();
            let held = lapsing(&client, client.shared().generation().clock.now() - SECOND * age);
            held.mark_deleted();
            assert_eq!(held.lost_reason(), Some(reason), "{age} s after the end");
            let now = client.shared().generation().clock.now();
            assert!(held.grace_end(SECOND * 10).is_none_or(|end| end <= now), "{age} s after the end");
        }
    }
}
