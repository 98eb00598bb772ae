use super::keeper_process;
use super::keeper_word::Word;
use super::trampoline;
use docent::time::Timestamp;
use rustix::io::ioctl_fionbio;
use rustix::process::Pid;
use std::io::{self, PipeWriter};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Keeper of the group of a command: a process that kills the group when we are killed, and at a time that it
/// is told, also while we stand still.
///
/// # On drop
/// It ends and leaves the group alone.
#[derive(Debug)]
pub(super) struct Keeper {
    process: Child,
    line: KeeperLine,
}

/// Line to a keeper.
#[derive(Debug)]
pub(super) struct KeeperLine {
    /// Closed without a word when we are killed.
    pipe: PipeWriter,
}

impl Keeper {
    /// Starts a keeper, which kills the group that it will be told at `kill_by`. It is in a group of its own,
    /// so that a signal for all of ours misses it.
    pub(super) fn start(kill_by: Option<Timestamp>) -> io::Result<Self> {
        let (reader, pipe) = io::pipe()?;
        // A keeper that is stopped reads nothing. It is not to stop us.
        ioctl_fionbio(&pipe, true)?;
        let mut command = Command::new(trampoline::program());
        command.arg0("docent").arg(keeper_process::WORD);
        command.env_clear().current_dir("/").process_group(0);
        let process = command.stdin(reader).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let line = KeeperLine { pipe };
        kill_by.into_iter().for_each(|at| line.kill_by(at));
        Ok(Self { process, line })
    }

    /// Tells it the group.
    pub(super) fn keep(&self, group: Pid) {
        Word::Group(group).write_to(&self.line.pipe);
    }

    /// Another end of the line to it.
    pub(super) fn line(&self) -> io::Result<KeeperLine> {
        Ok(KeeperLine { pipe: self.line.pipe.try_clone()? })
    }

    /// Number of the end of the line in this process.
    pub(super) fn number(&self) -> RawFd {
        self.line.pipe.as_raw_fd()
    }

    /// Ends it. True when it has killed the group because the time had come.
    pub(super) fn dismiss(mut self) -> bool {
        self.end()
    }

    fn end(&mut self) -> bool {
        // Also one that is stopped ends by that. It does nothing to one that has ended.
        let _ = self.process.kill();
        self.process.wait().is_ok_and(|status| status.code() == Some(keeper_process::OVERDUE.into()))
    }
}

impl KeeperLine {
    /// Tells the keeper to kill the group at this time, and not at the one that it was told before.
    pub(super) fn kill_by(&self, at: Timestamp) {
        Word::KillBy(at).write_to(&self.pipe);
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.end();
    }
}
