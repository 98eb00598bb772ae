//! The log message about a lock that waits for the client itself.

use docent_core::recipe::Line;
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::sleep;

/// Time that a wait lasts before it is logged. A shorter wait is ordinary contention between tasks.
const FIRST: Duration = Duration::from_secs(5);

/// Pause between two messages about the same wait.
const REMINDER: Duration = Duration::from_secs(60);

/// Logs from time to time that a lock of `line` is held by the client that waits for it.
pub(crate) async fn warn(line: &Line) -> Infallible {
    let mut pause = FIRST;
    loop {
        sleep(pause).await;
        pause = REMINDER;
        if let Some(own) = line.own_hold() {
            // Event: A task of this client waits for a lock that another guard of the same client holds.
            // Logged after 5 seconds, and then every minute.
            // Action: If one task acquires the lock twice, the wait never ends: use an `Owner`, or pass the
            // guard on. Otherwise find out why the other task holds the lock for so long.
            tracing::warn!(
                target: "docent::lock",
                client = %line.client().label(),
                path = %line.full_path(),
                fence = %own.fence,
                held_seconds = own.held_for.as_secs(),
                "waiting for a lock that this client itself holds; a lock acquired twice without an owner waits forever"
            );
        }
    }
}
