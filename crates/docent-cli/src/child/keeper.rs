use super::keeper_process;
use super::keeper_state::KeeperState;
use super::members::{Bystanders, Mark};
use super::memory_file::memory_file;
use super::trampoline;
use docent::time::Timestamp;
use rustix::io::ioctl_fionbio;
use rustix::process::Pid;
use std::io::{self, PipeWriter, Write};
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Lifetime below which a keeper counts as failed.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Maximum number of failed keepers in a row.
const MAX_FAILED_KEEPERS: u32 = 10;

/// Keeper of a command: a process that kills the command when docent is killed, or at a time that docent
/// sets, even while docent is stalled.
///
/// # On drop
/// The keeper ends and leaves the command alone.
#[derive(Debug)]
pub(super) struct Keeper {
    child: Child,
    started: Instant,
    /// Number of consecutive keepers that ended right after they were started.
    in_vain: u32,
    mark: Option<Mark>,
    bystanders: Bystanders,
    line: KeeperLine,
    /// Number of the keeper's process.
    process: Arc<AtomicI32>,
}

/// Line to a keeper, and to the keeper that replaces it.
#[derive(Debug, Clone)]
pub(super) struct KeeperLine(Arc<Line>);

#[derive(Debug)]
struct Line {
    state: KeeperState,
    /// Wakes the keeper. Closed without a byte if docent is killed.
    pipe: Mutex<PipeWriter>,
}

impl Keeper {
    /// Starts a keeper, which kills the command at `kill_by`. The group is set later. The keeper is in its
    /// own process group, so that a signal for docent's group misses it.
    pub(super) fn start(
        kill_by: Option<Timestamp>,
        mark: Option<&Mark>,
        bystanders: &Bystanders,
    ) -> io::Result<Self> {
        let state = KeeperState::new()?;
        kill_by.into_iter().for_each(|at| state.set_kill_by(at));
        let (child, pipe) = spawn(&state, mark, bystanders)?;
        let line = KeeperLine(Arc::new(Line { state, pipe: Mutex::new(pipe) }));
        let process = Arc::new(AtomicI32::new(number_of(&child)));
        let (mark, bystanders) = (mark.cloned(), bystanders.clone());
        Ok(Self { child, started: Instant::now(), in_vain: 0, mark, bystanders, line, process })
    }

    /// Starts another keeper if the current one ended, for example by SIGKILL from outside. A keeper that has
    /// killed the command is done.
    ///
    /// # Errors
    /// The error of starting a process, or an error if one keeper after the other ends immediately: then the
    /// command has no keeper.
    pub(super) fn replace_if_ended(&mut self) -> io::Result<()> {
        match self.child.try_wait() {
            Ok(Some(status)) if status.code() != Some(keeper_process::OVERDUE.into()) => {}
            _ => return Ok(()),
        }
        self.in_vain = if self.started.elapsed() < AT_ONCE { self.in_vain + 1 } else { 0 };
        if self.in_vain > MAX_FAILED_KEEPERS {
            return Err(io::Error::other("the process ends each time it is started"));
        }
        let (child, pipe) = spawn(&self.line.0.state, self.mark.as_ref(), &self.bystanders)?;
        *self.line.pipe() = pipe;
        self.process.store(number_of(&child), Ordering::Relaxed);
        self.child = child;
        self.started = Instant::now();
        Ok(())
    }

    /// Sets the group of the command.
    pub(super) fn keep(&self, group: Pid) {
        self.line.0.state.set_group(group);
        self.line.wake();
    }

    /// Returns the line to the keeper.
    pub(super) fn line(&self) -> KeeperLine {
        self.line.clone()
    }

    /// Returns the descriptor of the keeper's state in this process.
    pub(super) fn number(&self) -> RawFd {
        self.line.0.state.number()
    }

    /// Returns true if the program of the command was run, and false if it could not be, as far as the
    /// command's process could tell.
    pub(super) fn was_run(&self) -> Option<bool> {
        self.line.0.state.was_run()
    }

    /// Returns the number of the keeper's process, which changes when the keeper is replaced.
    pub(super) fn process(&self) -> &Arc<AtomicI32> {
        &self.process
    }

    /// Ends the keeper. Returns true if the keeper has killed the command because its time had come.
    pub(super) fn dismiss(&mut self) -> bool {
        // SIGKILL also ends a stopped keeper, and does nothing to one that has ended.
        let _ = self.child.kill();
        self.child.wait().is_ok_and(|status| status.code() == Some(keeper_process::OVERDUE.into()))
    }
}

impl KeeperLine {
    /// Sets a new time at which the keeper kills the command. It replaces the previous time.
    pub(super) fn kill_by(&self, at: Timestamp) {
        let is_earlier = self.0.state.kill_by().is_none_or(|before| at < before);
        self.0.state.set_kill_by(at);
        // A later time is seen when the earlier one comes.
        if is_earlier {
            self.wake();
        }
    }

    fn wake(&self) {
        // A full pipe wakes the keeper as well. The keeper may have ended.
        let _ = self.pipe().write(&[0]);
    }

    fn pipe(&self) -> MutexGuard<'_, PipeWriter> {
        self.0.pipe.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts a keeper process with its end of a pipe and the state.
fn spawn(
    state: &KeeperState,
    mark: Option<&Mark>,
    bystanders: &Bystanders,
) -> io::Result<(Child, PipeWriter)> {
    let (reader, pipe) = io::pipe()?;
    // A stopped keeper does not read. Writes to it must not block docent.
    ioctl_fionbio(&pipe, true)?;
    let mut command = Command::new(trampoline::program());
    command.arg0(keeper_process::NAME).args(keeper_process::arguments(mark, bystanders));
    command.env_clear().current_dir("/").process_group(0);
    // The keeper writes nothing there, and a container may have no `/dev/null`.
    command.stdin(reader).stdout(state.file()?).stderr(memory_file()?);
    let child = trampoline::spawn(&mut command)?;
    Ok((child, pipe))
}

fn number_of(child: &Child) -> i32 {
    Pid::from_child(child).as_raw_nonzero().get()
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.dismiss();
    }
}
