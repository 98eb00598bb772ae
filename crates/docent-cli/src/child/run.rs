use super::running::Running;
use super::{ChildCommand, Signals};
use crate::exit::Failure;
use std::process::ExitStatus;
use std::sync::Arc;

/// Runs a command to its end, and passes signals on to it.
///
/// # Errors
/// `NotRunnable` when no process can be made.
///
/// # Cancel safety
/// Dropping it kills the command.
pub(crate) async fn run(command: &ChildCommand, signals: &mut Signals) -> Result<ExitStatus, Failure> {
    let mut running = Running::start(command, None)?;
    let group = Arc::clone(running.group());
    loop {
        tokio::select! {
            () = running.ended() => return running.collect(),
            signal = signals.next() => group.signal(signal),
        }
    }
}
