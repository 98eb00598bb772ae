use super::keeper_message::KeeperMessage;
use super::keeper_process;
use super::trampoline;
use docent::time::Timestamp;
use rustix::io::ioctl_fionbio;
use rustix::process::Pid;
use std::io::{self, PipeWriter};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Lifetime below which a keeper counts as failed.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Maximum number of failed keepers in a row.
const MAX_FAILED_KEEPERS: u32 = 10;

/// Keeper of a command's group: a process that kills the group when docent is killed, or at a time that
/// docent sends it, even while docent is stalled.
///
/// # On drop
/// The keeper ends and leaves the group alone.
#[derive(Debug)]
pub(super) struct Keeper {
    process: Child,
    started: Instant,
    /// Number of consecutive keepers that ended right after they were started.
    in_vain: u32,
    line: KeeperLine,
}

/// Pipe to a keeper, and to the keeper that replaces it.
#[derive(Debug, Clone)]
pub(super) struct KeeperLine(Arc<Mutex<Line>>);

#[derive(Debug)]
struct Line {
    /// Closed without any word if docent is killed.
    pipe: PipeWriter,
    /// Pipe ends of keepers that have ended. A command that is starting may still open the first one by its
    /// number, so the number must not be reused for another file.
    spent: Vec<PipeWriter>,
    /// Group and time that the keeper was sent.
    group: Option<Pid>,
    kill_by: Option<Timestamp>,
}

impl Keeper {
    /// Starts a keeper, which kills the group at `kill_by`. The group is sent to it later. The keeper is in
    /// its own process group, so that a signal for docent's group misses it.
    pub(super) fn start(kill_by: Option<Timestamp>) -> io::Result<Self> {
        let (process, pipe) = spawn(None, kill_by)?;
        let line = Line { pipe, spent: Vec::new(), group: None, kill_by };
        let line = KeeperLine(Arc::new(Mutex::new(line)));
        Ok(Self { process, started: Instant::now(), in_vain: 0, line })
    }

    /// Starts another keeper if the current one ended, for example by SIGKILL from outside. A keeper that has
    /// killed the group is done.
    ///
    /// # Errors
    /// The error of starting a process, or an error if one keeper after the other ends immediately: then the
    /// group has no keeper.
    pub(super) fn replace_if_ended(&mut self) -> io::Result<()> {
        match self.process.try_wait() {
            Ok(Some(status)) if status.code() != Some(keeper_process::OVERDUE.into()) => {}
            _ => return Ok(()),
        }
        self.in_vain = if self.started.elapsed() < AT_ONCE { self.in_vain + 1 } else { 0 };
        if self.in_vain > MAX_FAILED_KEEPERS {
            return Err(io::Error::other("the process ends each time it is started"));
        }
        let mut line = self.line.lock();
        let (process, pipe) = spawn(line.group, line.kill_by)?;
        let spent = std::mem::replace(&mut line.pipe, pipe);
        line.spent.push(spent);
        self.process = process;
        self.started = Instant::now();
        Ok(())
    }

    /// Sends the group to the keeper.
    pub(super) fn keep(&self, group: Pid) {
        let mut line = self.line.lock();
        line.group = Some(group);
        KeeperMessage::Group(group).write_to(&line.pipe);
    }

    /// Returns the pipe to the keeper.
    pub(super) fn line(&self) -> KeeperLine {
        self.line.clone()
    }

    /// Returns the descriptor of the pipe in this process.
    pub(super) fn number(&self) -> RawFd {
        self.line.lock().pipe.as_raw_fd()
    }

    /// Ends the keeper. Returns true if the keeper has killed the group because its time had come.
    pub(super) fn dismiss(&mut self) -> bool {
        // SIGKILL also ends a stopped keeper, and does nothing to one that has ended.
        let _ = self.process.kill();
        self.process.wait().is_ok_and(|status| status.code() == Some(keeper_process::OVERDUE.into()))
    }
}

impl KeeperLine {
    /// Sends the keeper a new time at which to kill the group. It replaces the previous time.
    pub(super) fn kill_by(&self, at: Timestamp) {
        let mut line = self.lock();
        line.kill_by = Some(at);
        KeeperMessage::KillBy(at).write_to(&line.pipe);
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts a keeper process with its end of the pipe. What the keeper must know is written to the pipe before.
fn spawn(group: Option<Pid>, kill_by: Option<Timestamp>) -> io::Result<(Child, PipeWriter)> {
    let (reader, pipe) = io::pipe()?;
    // A stopped keeper does not read. Writes to it must not block docent.
    ioctl_fionbio(&pipe, true)?;
    let messages = group.map(KeeperMessage::Group).into_iter().chain(kill_by.map(KeeperMessage::KillBy));
    messages.for_each(|message| message.write_to(&pipe));
    let mut command = Command::new(trampoline::program());
    command.arg0("docent").arg(keeper_process::MODE);
    command.env_clear().current_dir("/").process_group(0);
    command.stdin(reader).stdout(Stdio::null()).stderr(Stdio::null());
    let process = trampoline::spawn(&mut command)?;
    Ok((process, pipe))
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.dismiss();
    }
}
