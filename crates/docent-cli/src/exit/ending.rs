use crate::child::CommandExit;

/// End of a verb that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The verb is done.
    Done,
    /// The verb is done, but a limit has cut its list.
    Cut,
    /// The command that the verb ran has ended.
    Child(CommandExit),
}

impl Ending {
    /// Returns the number of the signal that ended the command.
    pub(super) fn signal(self) -> Option<i32> {
        match self {
            Self::Done | Self::Cut => None,
            Self::Child(exit) => exit.signal(),
        }
    }

    /// Returns the exit code of the program.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Cut => 74,
            Self::Child(exit) => match (exit.code(), exit.signal()) {
                (Some(code), _) => low_byte(code),
                (None, Some(signal)) => of_signal(signal),
                (None, None) => 1,
            },
        }
    }
}

/// Returns the exit code of a program that this signal ended, as shells report it.
pub(super) fn of_signal(signal: i32) -> u8 {
    low_byte(128 + signal)
}

fn low_byte(code: i32) -> u8 {
    u8::try_from(code & 0xff).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    #[test]
    fn docent_exits_as_its_command_did() {
        // Encoded as by `wait`: the code in the second byte, the signal in the first.
        let ending = |raw| Ending::Child(CommandExit::new(ExitStatus::from_raw(raw), true));
        assert_eq!(ending(3 << 8).code(), 3);
        assert_eq!(ending(9).code(), 137);
        assert_eq!(of_signal(15), 143);
    }
}
