//! Reminders of an outage, by a task that exists only during the outage.

use super::{ConnectionState, ConnectionStatus};
use crate::operation::Shared;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Pause between two reminders of the same outage.
const REMINDER: Duration = Duration::from_secs(60);

/// Logs each minute that the client has no connection, until it has one. Only one task of a client does this.
pub(super) fn start_reminders(shared: &Arc<Shared>) {
    if !shared.reminding.swap(true, SeqCst) {
        shared.tasks.spawn_on(remind(Arc::clone(shared)), &shared.runtime);
    }
}

async fn remind(shared: Arc<Shared>) {
    loop {
        tokio::select! {
            () = remind_until_connected(&shared) => {}
            () = shared.closing.cancelled() => return,
        }
        shared.reminding.store(false, SeqCst);
        // The connection may have been lost again before the store, and no other task was started for that.
        if is_over(&shared.connection.borrow()) || shared.reminding.swap(true, SeqCst) {
            return;
        }
    }
}

/// Returns true if no reminder is due.
fn is_over(status: &ConnectionStatus) -> bool {
    status.state == ConnectionState::Connected || status.is_final()
}

async fn remind_until_connected(shared: &Shared) {
    let mut connection = shared.connection.subscribe();
    let (began, generation) = (Instant::now(), shared.generation());
    let lost_before = generation.held.lost();
    while timeout(REMINDER, connection.wait_for(is_over)).await.is_err() {
        let cause = shared.ensemble.last_error.get();
        // Event: The client has had no connection for one more minute. `guards` counts the guards that it
        // still holds, and `guards_lost` those that were lost since the connection was lost.
        // Action: Check that the servers are running and reachable from this host. The field `cause`
        // names the last error.
        tracing::warn!(
            target: "docent::client",
            client = %shared.label,
            cause = cause.map(|cause| cause.chain()),
            down_seconds = began.elapsed().as_secs(),
            guards = generation.held.live(),
            guards_lost = generation.held.lost() - lost_before,
            "still without a connection; retrying"
        );
    }
}
