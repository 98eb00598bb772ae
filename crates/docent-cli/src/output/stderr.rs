use nix::sys::signal::{SigSet, SigmaskHow};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::stdio::stderr;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Most bytes that wait to be written. Lines that come when there are more are left out.
const ROOM: usize = 1 << 20;

/// Standard error, written by a thread of its own: whoever tells something never waits, however long a full
/// pipe or a stopped terminal takes. Lines come in their order. Each `write` is a line.
///
/// The thread is started with the first line.
#[derive(Clone)]
pub(crate) struct Stderr {
    shared: Arc<Shared>,
}

struct Shared {
    waiting: Mutex<Waiting>,
    /// Comes with each change.
    changed: Condvar,
    sink: Box<Sink>,
}

/// Writes a line. Nobody may be there to read it.
type Sink = dyn Fn(&[u8]) + Send + Sync;

/// Lines that wait to be written.
#[derive(Debug, Default)]
struct Waiting {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Number of lines that were left out behind the last one that waits.
    left_out: u64,
    /// True while a line is being written.
    is_writing: bool,
    has_thread: bool,
}

impl Stderr {
    /// Standard error of this process.
    pub(super) fn new() -> Self {
        Self::into(|line| {
            let _ = Descriptor.write_all(line);
        })
    }

    fn into(sink: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        let (waiting, changed, sink) = (Mutex::default(), Condvar::new(), Box::new(sink));
        Self { shared: Arc::new(Shared { waiting, changed, sink }) }
    }

    /// Has a line written, unless too much waits already.
    pub(super) fn line(&self, line: Vec<u8>) {
        self.push(line, ROOM);
    }

    /// Has a line written, however much waits: for the few that say how it ended.
    pub(super) fn last_line(&self, line: Vec<u8>) {
        self.push(line, usize::MAX);
    }

    /// Waits until all lines are written, and no longer than `limit`. True when they are.
    pub(crate) fn written_within(&self, limit: Duration) -> bool {
        let waiting = self.shared.lock();
        let wait = self.shared.changed.wait_timeout_while(waiting, limit, |waiting| !waiting.is_done());
        wait.unwrap_or_else(PoisonError::into_inner).0.is_done()
    }

    fn push(&self, line: Vec<u8>, room: usize) {
        let mut waiting = self.shared.lock();
        waiting.add(line, room);
        if !waiting.has_thread {
            waiting.has_thread = self.start().is_ok();
        }
        match waiting.has_thread {
            true => self.shared.changed.notify_all(),
            // No thread can be had: it is written here, or nobody would ever know.
            false => waiting.take().iter().for_each(|line| (self.shared.sink)(line)),
        }
    }

    /// Starts the thread. It takes no signals: one for the process is to reach those that wait for it.
    fn start(&self) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let started = thread::Builder::new().name("docent-stderr".into()).spawn(move || shared.write_all());
        before.thread_set_mask()?;
        started.map(drop)
    }
}

/// For the log.
impl Write for Stderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.line(line.to_vec());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Stderr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stderr").finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes lines as they come.
    fn write_all(&self) {
        let mut waiting = self.lock();
        loop {
            let Some(line) = waiting.take() else {
                waiting.is_writing = false;
                self.changed.notify_all();
                waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            waiting.is_writing = true;
            drop(waiting);
            (self.sink)(&line);
            waiting = self.lock();
        }
    }
}

impl Waiting {
    fn is_done(&self) -> bool {
        self.lines.is_empty() && self.left_out == 0 && !self.is_writing
    }

    /// Adds a line where there is `room` for it.
    fn add(&mut self, line: Vec<u8>, room: usize) {
        if self.bytes.saturating_add(line.len()) > room {
            self.left_out += 1;
            return;
        }
        let note = self.note();
        for line in note.into_iter().chain([line]) {
            self.bytes += line.len();
            self.lines.push_back(line);
        }
    }

    /// The next line.
    fn take(&mut self) -> Option<Vec<u8>> {
        let line = self.lines.pop_front();
        self.bytes -= line.as_ref().map_or(0, Vec::len);
        line.or_else(|| self.note())
    }

    /// Line about those that were left out, in their place.
    fn note(&mut self) -> Option<Vec<u8>> {
        let count = std::mem::take(&mut self.left_out);
        let text = || format!("docent: lines left out here, as nobody read on: {count}\n");
        (count > 0).then(|| text().into_bytes())
    }
}

/// Descriptor of standard error, without the lock of the standard library: a panic elsewhere can be told
/// while a write stands still.
struct Descriptor;

impl Write for Descriptor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match rustix::io::write(stderr(), bytes) {
                // Others that have the terminal or the pipe may have made it so.
                Err(Errno::AGAIN) => poll(&mut [PollFd::new(&stderr(), PollFlags::OUT)], None).map(drop)?,
                written => return Ok(written?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};

    const PATIENCE: Duration = Duration::from_secs(30);

    /// Standard error whose reader takes a line when it likes.
    fn stalled() -> (Stderr, Receiver<String>) {
        let (sender, lines): (SyncSender<String>, _) = sync_channel(0);
        let write = move |line: &[u8]| sender.send(String::from_utf8(line.to_vec()).unwrap()).unwrap();
        (Stderr::into(write), lines)
    }

    #[test]
    fn lines_are_written_in_their_order_and_nobody_waits_for_them() {
        let (stderr, lines) = stalled();
        let all: Vec<_> = (0..100).map(|number| format!("{number}\n")).collect();
        all.iter().for_each(|line| stderr.line(line.clone().into_bytes()));
        assert!(!stderr.written_within(Duration::from_millis(1)), "nobody reads");
        assert!(lines.iter().take(100).eq(all));
        assert!(stderr.written_within(PATIENCE));
    }

    #[test]
    fn lines_that_find_no_room_are_counted_in_their_place() {
        let mut waiting = Waiting::default();
        for letter in "abcde".bytes() {
            waiting.add(vec![letter; 10], 30);
        }
        assert!(waiting.take().unwrap().starts_with(b"a"));
        waiting.add(b"f".to_vec(), 30);
        waiting.add(vec![b'g'; 10], 30);
        waiting.add(b"the end".to_vec(), usize::MAX);
        let rest = std::iter::from_fn(|| waiting.take()).map(|line| String::from_utf8(line).unwrap());
        let rest: Vec<_> = rest.map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect();
        assert_eq!(rest, ["bbbbbbbbbb", "cccccccccc", "2\n", "f", "1\n", "end"]);
        assert!(waiting.is_done());
    }

    #[test]
    fn lines_that_were_left_out_last_are_told_too() {
        let (stderr, lines) = stalled();
        stderr.line(vec![b'x'; ROOM + 1]);
        assert!(lines.recv().unwrap().contains("nobody read on: 1\n"));
        assert!(stderr.written_within(PATIENCE));
    }

    #[test]
    fn the_thread_takes_no_signals() {
        let (sender, masks) = channel();
        let stderr = Stderr::into(move |_| sender.send(SigSet::thread_get_mask().unwrap()).unwrap());
        stderr.line(Vec::new());
        assert!(masks.recv().unwrap().contains(nix::sys::signal::Signal::SIGTERM));
        assert!(!SigSet::thread_get_mask().unwrap().contains(nix::sys::signal::Signal::SIGTERM));
    }
}
