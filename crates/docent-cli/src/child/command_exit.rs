use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// End of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommandExit {
    status: ExitStatus,
    was_run: bool,
}

impl CommandExit {
    /// Creates the end of a command. `was_run` is false if its program could not be run: the process that
    /// failed to become the program then ended with 126 or 127, with which programs can end as well.
    pub(crate) fn new(status: ExitStatus, was_run: bool) -> Self {
        Self { status, was_run }
    }

    /// Returns true if the command ended with 0.
    pub(crate) fn success(self) -> bool {
        self.status.success()
    }

    /// Returns true if the program could not be run.
    pub(crate) fn was_not_run(self) -> bool {
        !self.was_run
    }

    /// Returns the code that the command ended with, or `None` if a signal ended it.
    pub(crate) fn code(self) -> Option<i32> {
        self.status.code()
    }

    /// Returns the number of the signal that ended the command.
    pub(crate) fn signal(self) -> Option<i32> {
        self.status.signal()
    }
}

impl fmt::Display for CommandExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.status.fmt(f)
    }
}
