//! First steps of a command's process: `docent` starts itself, ties its life to that of its parent, and
//! becomes the command. What it does before is done in the process that it concerns, after the fork.

use super::job_control;
use super::keeper_word::Word;
use super::lost_pipe;
use super::proc;
use docent::time::{BootClock, Clock, Timestamp};
use nix::sys::signal::{SigSet, Signal as Blocked};
use rustix::process::{Signal, getpgrp, getpid, kill_process};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode};
use std::str::FromStr;

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

/// Starts a process of this [`program`].
///
/// # Errors
/// That of starting it, in words that are not taken for one about a command.
pub(super) fn spawn(command: &mut Command) -> io::Result<Child> {
    command.spawn().map_err(|error| {
        let program = command.get_program().display();
        io::Error::new(error.kind(), format!("docent cannot start itself as {program}: {error}"))
    })
}

/// Ties of a command to the process that starts it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ties {
    /// Number of the pipe, in that process, by which the command sees that the lease is over.
    pub(super) lost: Option<RawFd>,
    /// Number of the line, in that process, to the keeper of the command's group.
    pub(super) keeper: Option<RawFd>,
    /// Time from which on the command is not started any more. The keeper kills it then.
    pub(super) kill_by: Option<Timestamp>,
}

impl Ties {
    /// Arguments before the words of the command.
    pub(super) fn arguments(self) -> [String; 5] {
        let kill_by = self.kill_by.map(Timestamp::as_nanos);
        let parent = std::process::id().to_string();
        [WORD.to_owned(), parent, text(self.lost), text(self.keeper), text(kill_by)]
    }

    fn from_arguments(mut arguments: impl Iterator<Item = OsString>) -> Self {
        let mut next = || arguments.next().unwrap_or_default();
        let (lost, keeper) = (number(next()), number(next()));
        Self { lost, keeper, kill_by: number(next()).map(Timestamp::from_nanos) }
    }
}

fn text(number: Option<impl ToString>) -> String {
    number.map_or_else(|| NONE.to_owned(), |number| number.to_string())
}

/// Becomes the command if the arguments say so. Returns the exit code when that fails; `None` when the
/// arguments are those of a user.
pub(crate) fn become_command_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != WORD {
        return None;
    }
    let parent = arguments.next().and_then(number)?;
    let ties = Ties::from_arguments(&mut arguments);
    let words: Vec<OsString> = arguments.collect();
    Some(become_command(parent, ties, &words))
}

fn number<N: FromStr>(argument: OsString) -> Option<N> {
    argument.into_string().ok()?.parse().ok()
}

fn become_command(parent: i32, ties: Ties, words: &[OsString]) -> ExitCode {
    let Some((program, arguments)) = words.split_first() else { return ExitCode::from(126) };
    if let Err(error) = die_with(parent) {
        tell(program, &error);
        return ExitCode::from(126);
    }
    if let Some(line) = ties.keeper {
        tell_keeper(parent, line);
    }
    job_control::take_terminal();
    let mut command = Command::new(program);
    command.args(arguments);
    // Without it the command is told by signals alone.
    if let Some(end) = ties.lost.and_then(|number| lost_pipe::keep_open(parent, number).ok()) {
        command.env(lost_pipe::VARIABLE, end.to_string());
    }
    // From now on it is the keeper who looks, however long we stand still.
    if ties.kill_by.is_some_and(|at| at <= BootClock.now()) {
        let _ = kill_process(getpid(), Signal::KILL);
    }
    let error = command.exec();
    tell(program, &error);
    ExitCode::from(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
}

/// Tells why a program cannot be run. Nobody may be there to read it.
fn tell(program: &OsStr, error: &io::Error) {
    // An `exec` that failed leaves it as commands have it: it would end us before our exit code does.
    let _ = SigSet::from(Blocked::SIGPIPE).thread_block();
    let _ = writeln!(io::stderr(), "docent: cannot run {program:?}: {error}");
}

/// Tells the keeper our group. Where that cannot be, as on other systems than Linux, `docent` does it alone.
fn tell_keeper(parent: i32, line: RawFd) {
    let path = proc::descriptor(parent, line);
    if let Some(pipe) = path.and_then(|path| File::options().write(true).open(path).ok()) {
        Word::Group(getpgrp()).write_to(&pipe);
    }
}

/// Lets this process, and the command that it becomes, be killed when `parent` ends.
#[cfg(target_os = "linux")]
fn die_with(parent: i32) -> io::Result<()> {
    use rustix::process::{Pid, getppid, set_parent_process_death_signal};
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_ours_that_is_missing_is_not_taken_for_the_command() {
        // As `/proc/self/exe` is where `/proc` is not mounted.
        let error = spawn(&mut Command::new("/no/such/docent")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().starts_with("docent cannot start itself as /no/such/docent: "), "{error}");
    }
}
