use super::ending::of_signal;
use std::fmt;

/// Signal that a program gets when it writes to a closed pipe.
const SIGPIPE: i32 = 13;

/// Failure of a verb: its kind, which decides the exit code, and its text, which goes to standard error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    kind: FailureKind,
    text: String,
}

/// Kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// An argument or a setting breaks a rule.
    Usage,
    /// Data is not valid.
    BadData,
    /// What an argument names does not exist.
    NotFound,
    /// Another client changed or created first what this one was to write. Nothing was written.
    Conflict,
    /// No server could be reached.
    Unreachable,
    /// Not acquired in time.
    NotAcquired {
        /// Exit code in place of 75.
        code: Option<u8>,
    },
    /// Lost while the command ran.
    Lost,
    /// Permission is missing.
    NoPermission,
    /// The command cannot be run. A command that was not found ends with 127 itself.
    NotRunnable,
    /// A signal ended a wait. Not reported on standard error.
    Signal(i32),
    /// Standard output was closed. Not reported on standard error.
    BrokenPipe,
    /// Anything else.
    Other,
}

impl Failure {
    fn new(kind: FailureKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// An argument or a setting breaks a rule.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::new(FailureKind::Usage, text)
    }

    /// Data is not valid.
    pub(crate) fn bad_data(text: impl Into<String>) -> Self {
        Self::new(FailureKind::BadData, text)
    }

    /// What an argument names does not exist.
    pub(crate) fn not_found(text: impl Into<String>) -> Self {
        Self::new(FailureKind::NotFound, text)
    }

    /// Another client changed or created first what this one was to write. Nothing was written.
    pub(crate) fn conflict(text: impl Into<String>) -> Self {
        Self::new(FailureKind::Conflict, text)
    }

    /// No server could be reached.
    pub(crate) fn unreachable(text: impl Into<String>) -> Self {
        Self::new(FailureKind::Unreachable, text)
    }

    /// Not acquired in time.
    pub(crate) fn not_acquired(text: impl Into<String>) -> Self {
        Self::new(FailureKind::NotAcquired { code: None }, text)
    }

    /// Lost while the command ran.
    pub(crate) fn lost(text: impl Into<String>) -> Self {
        Self::new(FailureKind::Lost, text)
    }

    /// Permission is missing.
    pub(crate) fn no_permission(text: impl Into<String>) -> Self {
        Self::new(FailureKind::NoPermission, text)
    }

    /// The command cannot be run. A command that was not found ends with 127 itself.
    pub(crate) fn not_runnable(text: impl Into<String>) -> Self {
        Self::new(FailureKind::NotRunnable, text)
    }

    /// Anything else.
    pub(crate) fn other(text: impl Into<String>) -> Self {
        Self::new(FailureKind::Other, text)
    }

    /// A signal ended a wait.
    pub(crate) fn signal(signal: i32) -> Self {
        Self::new(FailureKind::Signal(signal), "ended by a signal")
    }

    /// Standard output was closed.
    pub(crate) fn broken_pipe() -> Self {
        Self::new(FailureKind::BrokenPipe, "the output was closed")
    }

    /// Returns the same failure, with this exit code in place of 75 if nothing was acquired in time.
    pub(crate) fn or_conflict(mut self, wanted: Option<u8>) -> Self {
        if let FailureKind::NotAcquired { code } = &mut self.kind {
            *code = wanted;
        }
        self
    }

    /// Returns the kind.
    pub(crate) fn kind(&self) -> FailureKind {
        self.kind
    }

    /// Returns the same failure with `more` appended to its text.
    pub(crate) fn with(mut self, more: &str) -> Self {
        self.text.push_str(more);
        self
    }

    /// Returns true if the failure is reported on standard error.
    pub(super) fn is_reported(&self) -> bool {
        !matches!(self.kind, FailureKind::Signal(_) | FailureKind::BrokenPipe) && !self.is_expected()
    }

    /// Returns true if the requested exit code says that this is no failure: the failure is then shown as
    /// progress.
    pub(super) fn is_expected(&self) -> bool {
        matches!(self.kind, FailureKind::NotAcquired { code: Some(0) })
    }

    /// Returns the exit code of the program.
    pub(super) fn code(&self) -> u8 {
        match self.kind {
            FailureKind::Other => 1,
            FailureKind::Usage => 2,
            FailureKind::BadData => 65,
            FailureKind::NotFound => 66,
            FailureKind::Unreachable => 69,
            FailureKind::Conflict => 73,
            FailureKind::NotAcquired { code } => code.unwrap_or(75),
            FailureKind::Lost => 76,
            FailureKind::NoPermission => 77,
            FailureKind::NotRunnable => 126,
            FailureKind::Signal(signal) => of_signal(signal),
            FailureKind::BrokenPipe => of_signal(SIGPIPE),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
