//! The log message about a lock or permits that wait for the client itself.

use crate::semaphore::Limit;
use docent_core::recipe::{Line, OwnHolds, full_path};
use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;
use tokio::time::sleep;

/// Time that a wait lasts before it is logged, and for which the own hold must have existed. Anything shorter
/// is ordinary contention between tasks.
const FIRST: Duration = Duration::from_secs(5);

/// Pause between two messages about the same wait.
const REMINDER: Duration = Duration::from_secs(60);

/// Permits that are requested from the semaphore at `path`.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) path: &'a str,
    pub(crate) permits: u32,
    pub(crate) limit: &'a Limit,
}

/// Runs `acquire`, and logs from time to time that the client itself holds what `acquire` waits for: the lock
/// of `line`, or permits of `line` that exceed the limit together with the wanted ones.
pub(crate) async fn logged<T>(
    line: &Line,
    wanted: Option<Wanted<'_>>,
    acquire: impl Future<Output = T>,
) -> T {
    tokio::select! {
        biased;
        done = acquire => done,
        never = warn(line, wanted) => match never {},
    }
}

async fn warn(line: &Line, wanted: Option<Wanted<'_>>) -> Infallible {
    let mut pause = FIRST;
    loop {
        sleep(pause).await;
        let Some(own) = line.own_holds().filter(|own| own.held_for >= FIRST) else {
            pause = FIRST;
            continue;
        };
        pause = REMINDER;
        // Boxed because few waits last that long.
        let waits_for_itself = match wanted {
            None => true,
            Some(wanted) => Box::pin(exceed(own, wanted)).await,
        };
        if waits_for_itself {
            log(line, wanted, own);
        }
    }
}

/// Returns whether the wanted permits exceed the limit together with the client's `own` ones.
async fn exceed(own: OwnHolds, wanted: Wanted<'_>) -> bool {
    wanted.limit.get().await.is_ok_and(|limit| own.count + wanted.permits as usize > limit as usize)
}

fn log(line: &Line, wanted: Option<Wanted<'_>>, own: OwnHolds) {
    let client = line.client();
    let path = wanted.map_or_else(|| line.full_path().to_owned(), |wanted| full_path(client, wanted.path));
    // Event: A task of this client waits for a lock that another guard of the same client has held for at
    // least 5 seconds, or for permits of which this client holds too many. Logged after 5 seconds, and then
    // every minute.
    // Action: If one task acquires the lock twice, the wait never ends: use an `Owner`, or pass the guard on.
    // Acquire all permits that a task needs together. Otherwise find out why the other task holds the lock
    // for so long.
    tracing::warn!(
        target: "docent::lock",
        client = %client.label(),
        %path,
        fence = %own.fence,
        held_seconds = own.held_for.as_secs(),
        "waiting for a lock or permits that this client itself holds; a lock acquired twice without an owner waits forever"
    );
}
