//! First steps of a command's process: `docent` starts itself, ties its life to that of its parent, and
//! becomes the command. What it does before is done in the process that it concerns, after the fork.

use super::job_control;
use super::lost_pipe::{self, LostPipe};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// First argument, by which `docent` knows that it is to become a command.
const WORD: &str = "__run-command";

/// Stands for an argument that there is none of.
const NONE: &str = "-";

/// This program.
pub(super) fn program() -> PathBuf {
    // The link leads to the running program, also when its file was replaced since.
    match cfg!(target_os = "linux") {
        true => "/proc/self/exe".into(),
        false => std::env::current_exe().unwrap_or_else(|_| "docent".into()),
    }
}

/// Arguments before the words of the command.
pub(super) fn arguments(lost: Option<&LostPipe>) -> [String; 3] {
    let lost = lost.map_or_else(|| NONE.to_owned(), |lost| lost.number().to_string());
    [WORD.to_owned(), std::process::id().to_string(), lost]
}

/// Becomes the command if the arguments say so. Returns the exit code when that fails; `None` when the
/// arguments are those of a user.
pub(crate) fn become_command_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != WORD {
        return None;
    }
    let parent = arguments.next().and_then(number)?;
    let lost = arguments.next().and_then(number);
    let words: Vec<OsString> = arguments.collect();
    Some(become_command(parent, lost, &words))
}

fn number(argument: OsString) -> Option<i32> {
    argument.into_string().ok()?.parse().ok()
}

fn become_command(parent: i32, lost: Option<i32>, words: &[OsString]) -> ExitCode {
    let Some((program, arguments)) = words.split_first() else { return ExitCode::from(126) };
    if let Err(error) = die_with(parent) {
        eprintln!("docent: cannot run {program:?}: {error}");
        return ExitCode::from(126);
    }
    job_control::take_terminal();
    let mut command = Command::new(program);
    command.args(arguments);
    // Without it the command is told by signals alone.
    if let Some(end) = lost.and_then(|number| lost_pipe::keep_open(parent, number).ok()) {
        command.env(lost_pipe::VARIABLE, end.to_string());
    }
    let error = command.exec();
    eprintln!("docent: cannot run {program:?}: {error}");
    ExitCode::from(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
}

/// Lets this process, and the command that it becomes, be killed when `parent` ends.
#[cfg(target_os = "linux")]
fn die_with(parent: i32) -> io::Result<()> {
    use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // A parent that ended before that call does not count: another process is the parent now.
    match getppid() == Pid::from_raw(parent) {
        true => Ok(()),
        false => Err(io::Error::other("docent has ended")),
    }
}

#[cfg(not(target_os = "linux"))]
#[allow(clippy::unnecessary_wraps, reason = "it is as on Linux")]
fn die_with(_: i32) -> io::Result<()> {
    Ok(())
}
