//! Commands that run once for each change of a followed value or service.

use crate::app::App;
use crate::child::{ChildCommand, Signals, run};
use crate::exit::{Ending, Failure};
use std::ops::ControlFlow;

impl App {
    /// Runs `command` for a change. A failure is reported and the next change is awaited; a command that
    /// cannot be run ends the verb.
    ///
    /// # Errors
    /// `Signal` if a signal asked docent to end; `NotRunnable` if no process can be created.
    pub(super) async fn run_hook(
        &self,
        command: &ChildCommand,
        signals: &mut Signals,
    ) -> Result<ControlFlow<Ending>, Failure> {
        let exit = run(command, signals).await?;
        signals.check_end()?;
        if exit.was_not_run() {
            return Ok(ControlFlow::Break(Ending::Child(exit)));
        }
        if !exit.success() {
            self.output.remark(format!("command {:?} ended with {exit}", command.name()));
        }
        Ok(ControlFlow::Continue(()))
    }
}
