//! Keeps the lease of the next ticket in a line so fresh that its turn needs no further write.

use super::{Ticket, WaitError};
use crate::time::sleep_until;

/// Checks the own node often enough that the newest acknowledged write is always fresh enough for a hold. A
/// check is due three quarters of a pulse after the last acknowledged write, whichever part of the session
/// sent that write. Returns when a check fails.
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
            // Another write of the session may have renewed the lease in the meantime.
            continue;
        }
        // If an answer proved too little, pause before the next check. If several tickets of one session are
        // next in their lines, one of them checks for all.
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
