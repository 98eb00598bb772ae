//! Loading and saving the state of a server.

use crate::config::Config;
use crate::keep::KeepFile;
use crate::net::Hub;
use crate::state::{Origin, State};
use crate::time::Clock;
use crate::{KeepError, KeepFault, StartError};
use std::io;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// Returns the state from the file, or an unused state, and the file if there is one.
pub(super) async fn load(
    config: Config,
    clock: &Clock,
) -> Result<(State, Option<Arc<KeepFile>>), StartError> {
    let (origin, now) = (Origin::at(clock.since_1970()), clock.now_ms());
    let Some(keep) = config.keep.clone() else { return Ok((State::new(config, origin), None)) };
    let loaded = spawn_blocking(move || {
        let file = keep.open()?;
        Ok::<_, KeepError>((load_from(&file, config, origin, now)?, Some(Arc::new(file))))
    });
    Ok(loaded.await.map_err(|_| StartError::Stopped)??)
}

/// Loads the state, and removes the sessions from the file. If this server is killed, the next server must
/// not continue the sessions as if nothing had happened since.
fn load_from(file: &KeepFile, config: Config, origin: Origin, now: i64) -> Result<State, KeepError> {
    let state = file.load(config.clone(), origin, now)?.unwrap_or_else(|| State::new(config, origin));
    file.store(&state.without_sessions(now))?;
    Ok(state)
}

/// Saves the state of a server that has stopped, if it has a file. The file stays locked until the state is
/// written, even if the caller does not wait for that.
pub(super) async fn store(file: Option<Arc<KeepFile>>, hub: &Arc<Hub>) -> Result<(), KeepError> {
    let Some(file) = file else { return Ok(()) };
    let (hub, here) = (Arc::clone(hub), Arc::clone(&file));
    let stored = spawn_blocking(move || file.store(&hub.lock().state)).await;
    stored.unwrap_or_else(|_| Err(here.error(KeepFault::Write(io::ErrorKind::Interrupted.into()))))
}
