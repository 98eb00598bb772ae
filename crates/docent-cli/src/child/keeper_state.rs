use super::memory_file::memory_file;
use docent::time::Timestamp;
use rustix::process::Pid;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;

/// What a keeper must know, in a file in memory that it shares with docent and with the process that becomes
/// the command. Whenever the keeper looks, it sees the latest state, also after it was stopped.
#[derive(Debug)]
pub(super) struct KeeperState(File);

/// Places of the numbers, which have eight bytes each. 0 stands for an absent number.
const GROUP: u64 = 0;
const KILL_BY: u64 = 8;
const START: u64 = 16;

/// Values of [`START`].
const WAS_RUN: u64 = 1;
const WAS_NOT_RUN: u64 = 2;

impl KeeperState {
    /// Creates an empty state.
    pub(super) fn new() -> io::Result<Self> {
        let file = memory_file()?;
        file.set_len(START + 8)?;
        Ok(Self(file))
    }

    /// Returns the state in a file that another process has created.
    pub(super) fn of(file: File) -> Self {
        Self(file)
    }

    /// Returns the file, for another process.
    pub(super) fn file(&self) -> io::Result<File> {
        self.0.try_clone()
    }

    /// Returns the descriptor of the file in this process.
    pub(super) fn number(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Sets the group to keep.
    pub(super) fn set_group(&self, group: Pid) {
        self.write(GROUP, u64::from(group.as_raw_nonzero().get().cast_unsigned()));
    }

    pub(super) fn group(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.read(GROUP)).ok()?)
    }

    /// Sets the time at which the command must be killed.
    pub(super) fn set_kill_by(&self, at: Timestamp) {
        self.write(KILL_BY, at.as_nanos().max(1));
    }

    pub(super) fn kill_by(&self) -> Option<Timestamp> {
        Some(self.read(KILL_BY)).filter(|nanos| *nanos > 0).map(Timestamp::from_nanos)
    }

    /// Sets whether the program of the command is run.
    pub(super) fn set_run(&self, is_run: bool) {
        self.write(START, if is_run { WAS_RUN } else { WAS_NOT_RUN });
    }

    /// Returns whether the program of the command was run, if the process that becomes the command has said
    /// so.
    pub(super) fn was_run(&self) -> Option<bool> {
        match self.read(START) {
            WAS_RUN => Some(true),
            WAS_NOT_RUN => Some(false),
            _ => None,
        }
    }

    /// The file is in memory and has its full length, so neither of these calls can fail.
    fn write(&self, place: u64, number: u64) {
        let _ = self.0.write_all_at(&number.to_ne_bytes(), place);
    }

    fn read(&self, place: u64) -> u64 {
        let mut bytes = [0; 8];
        let _ = self.0.read_exact_at(&mut bytes, place);
        u64::from_ne_bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_owner_of_the_file_sees_the_latest_state() {
        let state = KeeperState::new().unwrap();
        let other = KeeperState::of(state.file().unwrap());
        assert_eq!((other.group(), other.kill_by()), (None, None));
        assert_eq!(other.was_run(), None);
        for is_run in [true, false] {
            state.set_run(is_run);
            assert_eq!(other.was_run(), Some(is_run));
        }
        state.set_group(Pid::INIT);
        for at in [u64::MAX, 7, 1] {
            state.set_kill_by(Timestamp::from_nanos(at));
            assert_eq!((other.group(), other.kill_by()), (Some(Pid::INIT), Some(Timestamp::from_nanos(at))));
        }
        state.set_kill_by(Timestamp::from_nanos(0));
        assert_eq!(other.kill_by(), Some(Timestamp::from_nanos(1)), "this time is over as well");
    }
}
