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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Life of a keeper that did not get far.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Most such keepers in a row.
const MOST_IN_VAIN: u32 = 10;

/// Keeper of the group of a command: a process that kills the group when we are killed, and at a time that it
/// is told, also while we stand still.
///
/// # On drop
/// It ends and leaves the group alone.
#[derive(Debug)]
pub(super) struct Keeper {
    process: Child,
    started: Instant,
    /// Number of the last ones that ended at once.
    in_vain: u32,
    line: KeeperLine,
}

/// Line to a keeper, and to the one that takes its place.
#[derive(Debug, Clone)]
pub(super) struct KeeperLine(Arc<Mutex<Line>>);

#[derive(Debug)]
struct Line {
    /// Closed without a word when we are killed.
    pipe: PipeWriter,
    /// Ends of lines to those that have ended. A command that starts may still look for the first one by its
    /// number, which is not to be another file's.
    spent: Vec<PipeWriter>,
    /// Facts that it was told.
    group: Option<Pid>,
    kill_by: Option<Timestamp>,
}

impl Keeper {
    /// Starts a keeper, which kills the group that it will be told at `kill_by`. It is in a group of its own,
    /// so that a signal for all of ours misses it.
    pub(super) fn start(kill_by: Option<Timestamp>) -> io::Result<Self> {
        let (process, pipe) = spawn(None, kill_by)?;
        let line = Line { pipe, spent: Vec::new(), group: None, kill_by };
        let line = KeeperLine(Arc::new(Mutex::new(line)));
        Ok(Self { process, started: Instant::now(), in_vain: 0, line })
    }

    /// Starts another one in the place of one that has ended, as by somebody's SIGKILL. One that has killed
    /// the group is done.
    ///
    /// # Errors
    /// That of starting a process, or of one after the other that ends at once: then nobody keeps the group.
    pub(super) fn replace_if_ended(&mut self) -> io::Result<()> {
        match self.process.try_wait() {
            Ok(Some(status)) if status.code() != Some(keeper_process::OVERDUE.into()) => {}
            _ => return Ok(()),
        }
        self.in_vain = if self.started.elapsed() < AT_ONCE { self.in_vain + 1 } else { 0 };
        if self.in_vain > MOST_IN_VAIN {
            return Err(io::Error::other("it ends whenever it is started"));
        }
        let mut line = self.line.lock();
        let (process, pipe) = spawn(line.group, line.kill_by)?;
        let spent = std::mem::replace(&mut line.pipe, pipe);
        line.spent.push(spent);
        self.process = process;
        self.started = Instant::now();
        Ok(())
    }

    /// Tells it the group.
    pub(super) fn keep(&self, group: Pid) {
        let mut line = self.line.lock();
        line.group = Some(group);
        Word::Group(group).write_to(&line.pipe);
    }

    /// The line to it.
    pub(super) fn line(&self) -> KeeperLine {
        self.line.clone()
    }

    /// Number of the end of the line in this process.
    pub(super) fn number(&self) -> RawFd {
        self.line.lock().pipe.as_raw_fd()
    }

    /// Ends it. True when it has killed the group because the time had come.
    pub(super) fn dismiss(&mut self) -> bool {
        // Also one that is stopped ends by that. It does nothing to one that has ended.
        let _ = self.process.kill();
        self.process.wait().is_ok_and(|status| status.code() == Some(keeper_process::OVERDUE.into()))
    }
}

impl KeeperLine {
    /// Tells the keeper to kill the group at this time, and not at the one that it was told before.
    pub(super) fn kill_by(&self, at: Timestamp) {
        let mut line = self.lock();
        line.kill_by = Some(at);
        Word::KillBy(at).write_to(&line.pipe);
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the process of a keeper, with the end of the line to it. What it is to know is on the line before.
fn spawn(group: Option<Pid>, kill_by: Option<Timestamp>) -> io::Result<(Child, PipeWriter)> {
    let (reader, pipe) = io::pipe()?;
    // A keeper that is stopped reads nothing. It is not to stop us.
    ioctl_fionbio(&pipe, true)?;
    let words = group.map(Word::Group).into_iter().chain(kill_by.map(Word::KillBy));
    words.for_each(|word| word.write_to(&pipe));
    let mut command = Command::new(trampoline::program());
    command.arg0("docent").arg(keeper_process::WORD);
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
