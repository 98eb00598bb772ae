//! First steps of a command's process. `docent` starts itself, ties its life to that of its parent, and
//! becomes the command. These steps run after the fork, in the process that they affect.

use super::cgroup;
use super::children;
use super::job_control;
use super::keeper_state::KeeperState;
use super::lost_pipe;
use super::proc;
use docent::time::{BootClock, Clock, Timestamp};
use nix::sys::signal::{SigSet, Signal as Blocked};
use rustix::fs::{Access, access};
use rustix::process::{Signal, geteuid, getpgrp, getpid, kill_process};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::str::FromStr;

/// First argument that makes `docent` become a command.
const MODE: &str = "__run-command";

/// Device that discards output and has no input.
const NULL: &str = "/dev/null";

/// Placeholder for an absent argument.
const NONE: &str = "-";

/// Returns the path of this program.
pub(super) fn program() -> PathBuf {
    // This link leads to the running program even if its file was replaced since.
    match cfg!(target_os = "linux") {
        true => "/proc/self/exe".into(),
        false => std::env::current_exe().unwrap_or_else(|_| "docent".into()),
    }
}

/// Starts a process of this [`program`].
///
/// # Errors
/// The error of starting it, worded so that it is not mistaken for an error of the command.
pub(super) fn spawn(command: &mut Command) -> io::Result<Child> {
    children::spawn(command).map_err(|error| {
        let program = command.get_program().display();
        io::Error::new(error.kind(), format!("docent cannot start itself as {program}: {error}"))
    })
}

/// Returns `/dev/null`, in place of `Stdio::null`, whose error would not name it.
pub(super) fn null() -> io::Result<Stdio> {
    let null = File::options().read(true).write(true).open(NULL);
    null.map(Stdio::from)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot open {NULL}: {error}")))
}

/// Ties of a command to the process that starts it.
#[derive(Debug, Clone, Default)]
pub(super) struct Ties {
    /// Descriptor, in that process, of the pipe that shows the command that the lease has ended.
    pub(super) lost: Option<RawFd>,
    /// Descriptor, in that process, of the state of the command's keeper.
    pub(super) keeper: Option<RawFd>,
    /// Time from which the command must not be started any more. The keeper kills it then.
    pub(super) kill_by: Option<Timestamp>,
    /// True if this user must be able to kill the command.
    pub(super) is_killable: bool,
    /// Folder of the command's control group.
    pub(super) cgroup: Option<PathBuf>,
}

impl Ties {
    /// Returns the arguments that precede the words of the command.
    pub(super) fn arguments(self) -> [OsString; 7] {
        let kill_by = self.kill_by.map(Timestamp::as_nanos);
        let parent = std::process::id().to_string();
        let is_killable = text(self.is_killable.then_some(1));
        let numbers = [text(self.lost), text(self.keeper), text(kill_by), is_killable].map(OsString::from);
        let [lost, keeper, kill_by, is_killable] = numbers;
        let cgroup = self.cgroup.map_or_else(|| NONE.into(), PathBuf::into_os_string);
        [MODE.into(), parent.into(), lost, keeper, kill_by, is_killable, cgroup]
    }

    fn from_arguments(mut arguments: impl Iterator<Item = OsString>) -> Self {
        let mut next = || arguments.next().unwrap_or_default();
        let (lost, keeper) = (number(next()), number(next()));
        let kill_by = number(next()).map(Timestamp::from_nanos);
        let is_killable = number::<u8>(next()).is_some();
        let cgroup = Some(next()).filter(|folder| folder != NONE).map(PathBuf::from);
        Self { lost, keeper, kill_by, is_killable, cgroup }
    }
}

fn text(number: Option<impl ToString>) -> String {
    number.map_or_else(|| NONE.to_owned(), |number| number.to_string())
}

/// Becomes the command if the arguments say so. Returns the exit code if that fails, and `None` for the
/// arguments of a user.
pub(crate) fn become_command_if_invoked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != MODE {
        return None;
    }
    let parent = arguments.next().and_then(number)?;
    let ties = Ties::from_arguments(&mut arguments);
    let words: Vec<OsString> = arguments.collect();
    Some(become_command(parent, &ties, &words))
}

fn number<N: FromStr>(argument: OsString) -> Option<N> {
    argument.into_string().ok()?.parse().ok()
}

fn become_command(parent: i32, ties: &Ties, words: &[OsString]) -> ExitCode {
    let Some((program, arguments)) = words.split_first() else { return ExitCode::from(126) };
    let state = ties.keeper.and_then(|number| state_of(parent, number));
    let fail = |error: &io::Error, code| {
        state.iter().for_each(|state| state.set_run(false));
        report_failure(program, error);
        ExitCode::from(code)
    };
    if let Err(error) = die_with(parent) {
        return fail(&error, 126);
    }
    if ties.is_killable
        && let Some(error) = cannot_be_killed(program)
    {
        return fail(&error, 126);
    }
    // Outside of its control group, the command is found like one that has none.
    let _ = ties.cgroup.as_deref().map(cgroup::join);
    if let Some(state) = &state {
        state.set_group(getpgrp());
        state.set_run(true);
    }
    job_control::take_terminal();
    let mut command = Command::new(program);
    command.args(arguments);
    // Without the pipe, the command is notified by signals only.
    if let Some(end) = ties.lost.and_then(|number| lost_pipe::keep_open(parent, number).ok()) {
        command.env(lost_pipe::VARIABLE, end.to_string());
    }
    // Between this check and the start of the command, only the keeper watches the deadline, however long
    // this process is stalled.
    if ties.kill_by.is_some_and(|at| at <= BootClock.now()) {
        let _ = kill_process(getpid(), Signal::KILL);
    }
    let error = command.exec();
    fail(&error, if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
}

/// Prints why a program cannot be run. Errors are ignored, because standard error may be closed.
fn report_failure(program: &OsStr, error: &io::Error) {
    // A failed `exec` has reset SIGPIPE to the default of commands, which would end this process before it
    // returns its exit code.
    let _ = SigSet::from(Blocked::SIGPIPE).thread_block();
    let _ = writeln!(io::stderr(), "docent: cannot run {program:?}: {error}");
}

/// Returns the state of the command's keeper, which is this descriptor of `docent`. If it cannot be opened,
/// as on systems other than Linux, `docent` sets the group.
fn state_of(parent: i32, number: RawFd) -> Option<KeeperState> {
    let path = proc::descriptor(parent, number)?;
    File::options().write(true).open(path).ok().map(KeeperState::of)
}

/// Returns why this user may not kill a program once it runs: it is one like `sudo`, which becomes another
/// user.
fn cannot_be_killed(program: &OsStr) -> Option<io::Error> {
    let own = geteuid();
    if own.is_root() {
        return None;
    }
    let metadata = fs::metadata(find(program)?).ok()?;
    let changes_user = metadata.mode() & SET_USER_ID != 0 && metadata.uid() != own.as_raw();
    changes_user.then(|| {
        io::Error::other(
            "it runs as another user, whom this user may not kill when the lock is lost; run docent itself as \
             that user, such as with `sudo docent lock`, or give --on-lost ignore",
        )
    })
}

/// Mode of programs that run as their owner.
const SET_USER_ID: u32 = 0o4000;

/// Returns the file of a program, as `exec` finds it.
fn find(program: &OsStr) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Some(program.into());
    }
    let folders = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&folders).map(|folder| folder.join(program));
    files.find(|file| access(file, Access::EXEC_OK).is_ok() && file.is_file())
}

/// Makes the kernel kill this process, and the command that it becomes, when `parent` ends.
#[cfg(target_os = "linux")]
fn die_with(parent: i32) -> io::Result<()> {
    use rustix::process::{Pid, getppid, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // A parent that ended before that call sends no death signal; this process has another parent now.
    match getppid() == Pid::from_raw(parent) {
        true => Ok(()),
        false => Err(io::Error::other("docent has ended")),
    }
}

#[cfg(not(target_os = "linux"))]
#[allow(clippy::unnecessary_wraps, reason = "the signature is the same as on Linux")]
fn die_with(_: i32) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_docent_executable_is_not_reported_as_a_missing_command() {
        // `/proc/self/exe` is missing like this if `/proc` is not mounted.
        let error = spawn(&mut Command::new("/no/such/docent")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().starts_with("docent cannot start itself as /no/such/docent: "), "{error}");
    }
}
