//! The lease of a ticket that is next in its line, kept so young that its turn needs no other write.

use super::{Ticket, WaitError};
use crate::time::sleep_until;

/// Checks the own node as often as it takes to have a write that is young enough for a hold, until the check
/// is refused: three quarters of a pulse after the last acknowledged write, whoever of the session's made
/// that.
///
/// # Cancel safety
/// Cancel safe: a check changes nothing.
pub(super) async fn keep_fresh(ticket: &Ticket) -> WaitError {
    let (lease, clock) = (&ticket.generation.lease, &ticket.generation.clock);
    let mut not_before = clock.now();
    loop {
        let pace = lease.timing().pulse() / 4 * 3;
        let due = (lease.proof() + pace).max(not_before);
        if clock.now() < due {
            sleep_until(clock.as_ref(), due).await;
            // Another write of the session may have renewed the lease meanwhile.
            continue;
        }
        // An answer that proved little is not followed by the next check at once, and of the tickets of one
        // session that are next in their lines one checks for all.
        let now = clock.now();
        not_before = now + lease.timing().pause();
        if !ticket.generation.begin_check(now, lease.timing().pause()) {
            continue;
        }
        match ticket.proven(ticket.submit_check().await).await {
            Ok(_) => {}
            Err(error) => return error,
        }
    }
}
