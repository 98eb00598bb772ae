use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// Ending of a verb that did what it was asked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Done.
    Done,
    /// The command that it ran ended so.
    Child(ExitStatus),
}

impl Ending {
    /// Number of the signal that ended the command.
    pub(super) fn signal(self) -> Option<i32> {
        match self {
            Self::Done => None,
            Self::Child(status) => status.signal(),
        }
    }

    /// Exit code of the program.
    pub(super) fn code(self) -> u8 {
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

/// Exit code of a program that this signal ended, as in shells.
pub(super) fn of_signal(signal: i32) -> u8 {
    low_byte(128 + signal)
}

fn low_byte(code: i32) -> u8 {
    u8::try_from(code & 0xff).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_of_a_command_is_that_of_the_program() {
        // As `wait` encodes them: the code in the second byte, the signal in the first.
        assert_eq!(Ending::Child(ExitStatus::from_raw(3 << 8)).code(), 3);
        assert_eq!(Ending::Child(ExitStatus::from_raw(9)).code(), 137);
        assert_eq!(of_signal(15), 143);
    }
}
