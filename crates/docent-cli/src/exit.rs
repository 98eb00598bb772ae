//! The ending of the program, and the exit code that tells of it.

use crate::output::Output;
use docent::locks::AcquireError;
use docent::{Error, ErrorKind};
use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

/// Exit codes, for the help.
pub(crate) const HELP: &str = "\
Exit codes:
  the command's own where a command was run, 128 + N when signal N ended it or docent
  1    failed
  2    usage: an argument or a setting breaks a rule
  65   data is not valid
  69   no server could be reached
  75   not acquired in time
  76   lost while the command ran
  77   permission is missing, or the credentials were refused
  126  the command cannot be run
  127  the command was not found";

/// Signal that a program gets when it writes to a pipe nobody reads.
const SIGPIPE: i32 = 13;

/// Outcome of a verb.
pub(crate) type Outcome = Result<Ending, Failure>;

/// Ending of a verb that did what it was asked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Done.
    Done,
    /// The command that it ran ended so.
    Child(ExitStatus),
}

/// Failure of a verb. Its text goes to standard error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// An argument or a setting breaks a rule.
    Usage(String),
    /// Data is not valid.
    BadData(String),
    /// No server could be reached.
    Unreachable(String),
    /// Not acquired in time.
    NotAcquired {
        /// The text for people.
        text: String,
        /// Exit code in place of 75.
        code: Option<u8>,
    },
    /// Lost while the command ran.
    Lost(String),
    /// Permission is missing.
    NoPermission(String),
    /// The command cannot be run. One that was not found ends with 127 itself.
    NotRunnable(String),
    /// A signal ended the wait for something. Not told.
    Signal(i32),
    /// Nobody reads standard output any more. Not told.
    BrokenPipe,
    /// Anything else.
    Other(String),
}

impl Ending {
    fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Child(status) => match (status.code(), status.signal()) {
                (Some(code), _) => low_byte(code),
                (None, Some(signal)) => of_signal(signal),
                (None, None) => 1,
            },
        }
    }
}

impl Failure {
    fn code(&self) -> u8 {
        match self {
            Self::Other(_) => 1,
            Self::Usage(_) => 2,
            Self::BadData(_) => 65,
            Self::Unreachable(_) => 69,
            Self::NotAcquired { code, .. } => code.unwrap_or(75),
            Self::Lost(_) => 76,
            Self::NoPermission(_) => 77,
            Self::NotRunnable(_) => 126,
            Self::Signal(signal) => of_signal(*signal),
            Self::BrokenPipe => of_signal(SIGPIPE),
        }
    }

    /// The same failure, with `more` at the end of its text. One that is not told stays as it is.
    pub(crate) fn with(mut self, more: &str) -> Self {
        match &mut self {
            Self::Usage(text)
            | Self::BadData(text)
            | Self::Unreachable(text)
            | Self::NotAcquired { text, .. }
            | Self::Lost(text)
            | Self::NoPermission(text)
            | Self::NotRunnable(text)
            | Self::Other(text) => text.push_str(more),
            Self::Signal(_) | Self::BrokenPipe => {}
        }
        self
    }

    fn text(&self) -> &str {
        match self {
            Self::Usage(text)
            | Self::BadData(text)
            | Self::Unreachable(text)
            | Self::NotAcquired { text, .. }
            | Self::Lost(text)
            | Self::NoPermission(text)
            | Self::NotRunnable(text)
            | Self::Other(text) => text,
            Self::Signal(_) => "ended by a signal",
            Self::BrokenPipe => "nobody reads the output any more",
        }
    }
}

fn low_byte(code: i32) -> u8 {
    u8::try_from(code & 0xff).unwrap_or(1)
}

fn of_signal(signal: i32) -> u8 {
    low_byte(128 + signal)
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let text = with_sources(&error);
        match error.kind() {
            ErrorKind::InvalidInput | ErrorKind::ShortLease => Self::Usage(text),
            ErrorKind::TooLarge => Self::BadData(text),
            ErrorKind::NoAuth | ErrorKind::AuthFailed => Self::NoPermission(text),
            ErrorKind::Lost(_) => Self::Lost(text),
            ErrorKind::Timeout | ErrorKind::OutcomeUnknown | ErrorKind::SessionChanged => {
                Self::Unreachable(text)
            }
            _ => Self::Other(text),
        }
    }
}

impl From<AcquireError> for Failure {
    fn from(error: AcquireError) -> Self {
        match error {
            AcquireError::Core(error) => error.into(),
            AcquireError::Busy(missed) | AcquireError::TimedOut(missed) if !missed.servers_reachable() => {
                Self::Unreachable(missed.to_string())
            }
            AcquireError::Busy(_) | AcquireError::TimedOut(_) => {
                Self::NotAcquired { text: error.to_string(), code: None }
            }
            AcquireError::Lost(_) => Self::Lost(error.to_string()),
            error => Self::Other(error.to_string()),
        }
    }
}

/// Failures of writing the output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            _ => Self::Other(format!("cannot write the output: {error}")),
        }
    }
}

/// `error` with the reasons behind it that it does not name itself.
fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(reason) = source {
        let reason_text = reason.to_string();
        if !text.contains(&reason_text) {
            text = format!("{text}: {reason_text}");
        }
        source = reason.source();
    }
    text
}

/// Tells of a failure on standard error, and returns the exit code.
pub(crate) fn report(outcome: Outcome, output: &Output) -> ExitCode {
    ExitCode::from(match outcome {
        Ok(ending) => ending.code(),
        Err(failure) => {
            if !matches!(failure, Failure::BrokenPipe | Failure::Signal(_)) {
                output.error(&failure);
            }
            failure.code()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_of_a_command_is_that_of_the_program() {
        // As `wait` encodes them: the code in the second byte, the signal in the first.
        assert_eq!(Ending::Child(ExitStatus::from_raw(3 << 8)).code(), 3);
        assert_eq!(Ending::Child(ExitStatus::from_raw(9)).code(), 137);
        assert_eq!(Failure::Signal(15).code(), 143);
    }

    #[test]
    fn errors_of_the_servers_have_codes_of_their_own() {
        let code = |error: Error| Failure::from(error).code();
        assert_eq!(code(Error::invalid_input("lock", "a rule")), 2);
        assert_eq!(code(Error::closed("lock", "/a")), 1);
    }
}
