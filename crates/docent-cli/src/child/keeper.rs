//! Process that outlives a killed `docent` for a moment, to kill the group of its command: the death signal
//! of Linux reaches the command alone, and not the processes that the command has started.

use super::group::Group;
use super::trampoline;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{self, PipeWriter, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};

/// First argument, by which `docent` knows that it is a keeper.
const WORD: &str = "__keep-group";

/// Keeper of the group of a command.
///
/// # On drop
/// It ends and leaves the group alone.
#[derive(Debug)]
pub(super) struct Keeper {
    process: Child,
    /// Closed without a word when we are killed.
    pipe: PipeWriter,
}

impl Keeper {
    /// Starts a keeper. It is in a group of its own, so that a signal for all of ours misses it.
    pub(super) fn start(group: &Group) -> io::Result<Self> {
        let (reader, pipe) = io::pipe()?;
        let mut command = Command::new(trampoline::program());
        command.arg0("docent").args([WORD, &group.id().to_string()]);
        command.env_clear().current_dir("/").process_group(0);
        let process = command.stdin(reader).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        Ok(Self { process, pipe })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // It may have been killed.
        let _ = self.pipe.write_all(b"\n");
        let _ = self.process.wait();
    }
}

/// Keeps a group if the arguments say so, until `docent` has ended. `None` when the arguments are those of a
/// user.
pub(crate) fn keep_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != WORD {
        return None;
    }
    let group = arguments.next().and_then(|group| Pid::from_raw(group.to_str()?.parse().ok()?));
    let mut word = [0];
    if let (Some(group), Ok(0)) = (group, io::stdin().read(&mut word)) {
        // All may have ended with their leader.
        let _ = kill_process_group(group, Signal::KILL);
    }
    Some(ExitCode::SUCCESS)
}
