use super::{Ending, Failure, FailureKind};
use crate::output::Output;
use std::process::ExitCode;
use std::time::Duration;

/// Exit codes, for the help.
pub(crate) const HELP: &str = "\
Exit codes:
the command's own if a command was run; 128 + N if signal N ended the command or docent
1    failed
2    usage: an argument or a setting breaks a rule
65   data is not valid
66   the service or session does not exist
69   no server could be reached
73   another client changed or created it first: nothing was written
74   the list is incomplete, because a limit was reached (ls)
75   not acquired in time, no such state in time, or fewer instances than requested
76   lost while the command ran
77   permission denied, or the credentials were refused
126  the command cannot be run
127  the command was not found";

/// Outcome of a verb.
pub(crate) type Outcome = Result<Ending, Failure>;

/// Longest wait at the end for standard error to be written.
const FLUSH: Duration = Duration::from_secs(1);

/// Returns the number of the signal that ended the command or the wait.
pub(crate) fn signal_of(outcome: &Outcome) -> Option<i32> {
    match outcome {
        Ok(ending) => ending.signal(),
        Err(failure) => match failure.kind() {
            FailureKind::Signal(signal) => Some(signal),
            _ => None,
        },
    }
}

/// Reports a failure on standard error, and returns the exit code.
pub(crate) fn report(outcome: Outcome, output: &Output) -> ExitCode {
    let code = match outcome {
        Ok(ending) => ending.code(),
        Err(failure) => {
            if failure.is_reported() {
                output.error(&failure);
            } else if failure.is_expected() {
                output.progress(failure.to_string());
            }
            failure.code()
        }
    };
    // A reader that is stuck gets one second.
    output.stderr().written_within(FLUSH);
    ExitCode::from(code)
}
