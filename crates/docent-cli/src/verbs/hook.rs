//! Commands that are run again and again, for each change of something that is followed.

use crate::app::App;
use crate::child::{ChildCommand, Signals, run, was_not_run};
use crate::exit::{Ending, Failure};
use std::ops::ControlFlow;

impl App {
    /// Runs `command` for a change. When it fails that is told, and the next change is waited for; a command
    /// that cannot be run at all is the end.
    ///
    /// # Errors
    /// `Signal` when a signal came that asks for the end; `NotRunnable` when no process can be made.
    pub(super) async fn run_hook(
        &self,
        command: &ChildCommand,
        signals: &mut Signals,
    ) -> Result<ControlFlow<Ending>, Failure> {
        let status = run(command, signals).await?;
        signals.check_end()?;
        if was_not_run(status) {
            return Ok(ControlFlow::Break(Ending::Child(status)));
        }
        if !status.success() {
            self.output.remark(format!("{:?} ended with {status}", command.name()));
        }
        Ok(ControlFlow::Continue(()))
    }
}
