//! The state that a server begins with, and that it leaves in its file.

use crate::config::Config;
use crate::keep::Keep;
use crate::net::Hub;
use crate::state::{Origin, State};
use crate::time::Clock;
use crate::{KeepError, KeepFault, StartError};
use std::io;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// The state of the file, or that of a server that was never used.
pub(super) async fn load(config: Config, clock: &Clock) -> Result<State, StartError> {
    let (origin, now) = (Origin::at(clock.since_1970()), clock.now_ms());
    let Some(keep) = config.keep.clone() else { return Ok(State::new(config, origin)) };
    let loaded = spawn_blocking(move || load_from(&keep, config, origin, now)).await;
    Ok(loaded.map_err(|_| StartError::Stopped)??)
}

/// Takes the sessions out of the file, where they were loaded: should this server be killed, the next one
/// must not go on with them as if nothing had been done since.
fn load_from(keep: &Keep, config: Config, origin: Origin, now: i64) -> Result<State, KeepError> {
    let state = keep.load(config.clone(), origin, now)?.unwrap_or_else(|| State::new(config, origin));
    keep.store(&state.without_sessions(now))?;
    Ok(state)
}

/// Keeps the state of a server that has stopped, where it has a file.
pub(super) async fn store(config: &Config, hub: &Arc<Hub>) -> Result<(), KeepError> {
    let Some(keep) = config.keep.clone() else { return Ok(()) };
    let (hub, here) = (Arc::clone(hub), keep.clone());
    let stored = spawn_blocking(move || keep.store(&hub.lock().state)).await;
    stored.unwrap_or_else(|_| Err(here.error(KeepFault::Write(io::ErrorKind::Interrupted.into()))))
}
