use nix::sys::signal::{SigSet, SigmaskHow};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::stdio;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Maximum number of bytes that wait to be written. Further lines are dropped.
const ROOM: usize = 1 << 20;

/// A writer for a standard stream that never blocks its caller, even if a pipe is full or a terminal is
/// stopped.
///
/// A dedicated thread, which starts with the first line, does the writing. Each `write` is one line, and
/// lines keep the order of the calls. Lines are dropped while more than 1 MiB waits to be written, or if the
/// stream refuses them. When the stream accepts lines again, an extra line reports how many were dropped. No
/// method fails or panics.
///
/// A program that logs to a standard stream can use this type as the writer of `tracing_subscriber`. A
/// stalled reader of the stream then cannot stall a server in the same process.
#[derive(Clone)]
pub struct LossyWriter {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    waiting: Mutex<Waiting>,
    /// Notified whenever `waiting` changes.
    changed: Condvar,
    sink: Box<Sink>,
}

/// Function that writes a whole line, or fails.
type Sink = dyn Fn(&[u8]) -> io::Result<()> + Send + Sync;

/// An item of the output queue.
#[derive(Debug)]
enum Entry {
    Line(Vec<u8>),
    /// Number of lines that were dropped at this position.
    Dropped(u64),
}

/// Queue of entries to be written.
#[derive(Debug, Default)]
struct Waiting {
    entries: VecDeque<Entry>,
    bytes: usize,
    /// Number of lines that were dropped after the last entry.
    dropped: u64,
    /// Number of lines that the stream has refused since it last accepted one.
    refused: u64,
    /// Whether the thread is writing an entry.
    is_writing: bool,
    has_thread: bool,
}

impl LossyWriter {
    /// Returns a writer for standard error. `name` starts the line that reports dropped lines.
    pub fn stderr(name: &str) -> Self {
        Self::into(name, |line| Descriptor(stdio::stderr()).write_all(line))
    }

    /// Returns a writer for standard output. `name` starts the line that reports dropped lines.
    pub fn stdout(name: &str) -> Self {
        Self::into(name, |line| Descriptor(stdio::stdout()).write_all(line))
    }

    fn into(name: &str, sink: impl Fn(&[u8]) -> io::Result<()> + Send + Sync + 'static) -> Self {
        let (waiting, changed, sink) = (Mutex::default(), Condvar::new(), Box::new(sink));
        Self { shared: Arc::new(Shared { name: name.to_owned(), waiting, changed, sink }) }
    }

    /// Queues a line, or drops it if more than 1 MiB already waits.
    pub fn line(&self, line: Vec<u8>) {
        self.push(line, ROOM);
    }

    /// Queues a line regardless of how much already waits. It is meant for the few lines that report how the
    /// program ended.
    pub fn last_line(&self, line: Vec<u8>) {
        self.push(line, usize::MAX);
    }

    /// Waits up to `limit` until all queued lines are written. Returns whether they are.
    pub fn written_within(&self, limit: Duration) -> bool {
        let mut waiting = self.shared.lock();
        if !waiting.is_done() && !self.has_thread(&mut waiting) {
            // The process cannot start a thread, so the remaining lines are written here.
            while let Some(entry) = waiting.take() {
                let _ = (self.shared.sink)(&self.shared.text(&entry));
            }
        }
        let wait = self.shared.changed.wait_timeout_while(waiting, limit, |waiting| !waiting.is_done());
        wait.unwrap_or_else(PoisonError::into_inner).0.is_done()
    }

    fn push(&self, line: Vec<u8>, room: usize) {
        if planted!(LogsWait) {
            let _ = (self.shared.sink)(&line);
            return;
        }
        let mut waiting = self.shared.lock();
        waiting.add(line, room);
        if self.has_thread(&mut waiting) {
            self.shared.changed.notify_all();
        }
    }

    /// Starts the thread if it does not run yet. Returns `false` if the process cannot start a thread.
    fn has_thread(&self, waiting: &mut Waiting) -> bool {
        waiting.has_thread = waiting.has_thread || self.start().is_ok();
        waiting.has_thread
    }

    /// Starts the thread with all signals blocked, so that signals for the process go to the threads that
    /// wait for them.
    fn start(&self) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let started = thread::Builder::new().name("docent-writer".into()).spawn(move || shared.write_all());
        before.thread_set_mask()?;
        started.map(drop)
    }
}

impl Write for LossyWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.line(line.to_vec());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for LossyWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LossyWriter").finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes entries as they are queued.
    fn write_all(&self) {
        let mut waiting = self.lock();
        loop {
            let Some(entry) = waiting.take() else {
                waiting.is_writing = false;
                self.changed.notify_all();
                waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            waiting.is_writing = true;
            drop(waiting);
            let written = (self.sink)(&self.text(&entry));
            waiting = self.lock();
            match written {
                Ok(()) => waiting.report_refused(),
                Err(_) => waiting.refused += entry.lines(),
            }
        }
    }

    fn text(&self, entry: &Entry) -> Vec<u8> {
        match entry {
            Entry::Line(line) => line.clone(),
            Entry::Dropped(count) => {
                format!("{}: {count} lines were dropped: the stream did not accept them\n", self.name)
                    .into_bytes()
            }
        }
    }
}

impl Waiting {
    /// Returns whether all entries are written.
    fn is_done(&self) -> bool {
        self.entries.is_empty() && self.dropped == 0 && !self.is_writing
    }

    /// Adds a line, or counts it as dropped if the queue would exceed `room` bytes.
    fn add(&mut self, line: Vec<u8>, room: usize) {
        if self.bytes.saturating_add(line.len()) > room {
            self.dropped += 1;
            return;
        }
        let note = self.note();
        self.entries.extend(note);
        self.bytes += line.len();
        self.entries.push_back(Entry::Line(line));
    }

    /// Removes and returns the next entry.
    fn take(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front();
        if let Some(Entry::Line(line)) = &entry {
            self.bytes -= line.len();
        }
        entry.or_else(|| self.note())
    }

    /// Returns an entry for the lines that were dropped after the last entry.
    fn note(&mut self) -> Option<Entry> {
        let count = std::mem::take(&mut self.dropped);
        (count > 0).then_some(Entry::Dropped(count))
    }

    /// Queues a report of the lines that the stream refused. Called when the stream accepts lines again.
    fn report_refused(&mut self) {
        let count = std::mem::take(&mut self.refused);
        if count > 0 {
            self.entries.push_front(Entry::Dropped(count));
        }
    }
}

impl Entry {
    /// Number of lines that are missing from the output if this entry is not written.
    fn lines(&self) -> u64 {
        match self {
            Self::Line(_) => 1,
            Self::Dropped(count) => *count,
        }
    }
}

/// Descriptor of a standard stream. It bypasses the standard library's lock, so that another thread can
/// report a panic while a write stalls.
struct Descriptor(BorrowedFd<'static>);

impl Write for Descriptor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match rustix::io::write(self.0, bytes) {
                // Another process that shares the terminal or the pipe may have made the descriptor
                // non-blocking.
                Err(Errno::AGAIN) => poll(&mut [PollFd::new(&self.0, PollFlags::OUT)], None).map(drop)?,
                written => return Ok(written?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};

    const PATIENCE: Duration = Duration::from_secs(30);

    /// Returns a writer for a stream whose reader decides when to take each line.
    fn stalled() -> (LossyWriter, Receiver<String>) {
        let (sender, lines): (SyncSender<String>, _) = sync_channel(0);
        let write = move |line: &[u8]| {
            sender.send(String::from_utf8(line.to_vec()).unwrap()).map_err(io::Error::other)
        };
        (LossyWriter::into("program", write), lines)
    }

    /// Returns the text of a line, or the number of dropped lines.
    fn short(entry: &Entry) -> String {
        match entry {
            Entry::Line(line) => String::from_utf8(line.clone()).unwrap(),
            Entry::Dropped(count) => format!("{count} dropped"),
        }
    }

    #[test]
    fn lines_are_written_in_their_order_and_no_caller_waits() {
        let (writer, lines) = stalled();
        let all: Vec<_> = (0..100).map(|number| format!("{number}\n")).collect();
        all.iter().for_each(|line| writer.line(line.clone().into_bytes()));
        assert!(!writer.written_within(Duration::from_millis(1)), "unread lines count as written");
        assert!(lines.iter().take(100).eq(all));
        assert!(writer.written_within(PATIENCE));
    }

    #[test]
    fn lines_that_find_no_room_are_counted_in_their_place() {
        let mut waiting = Waiting::default();
        for letter in "abcde".bytes() {
            waiting.add(vec![letter; 4], 12);
        }
        assert_eq!(short(&waiting.take().unwrap()), "aaaa");
        waiting.add(b"f".to_vec(), 12);
        waiting.add(vec![b'g'; 4], 12);
        waiting.add(b"the end".to_vec(), usize::MAX);
        let rest: Vec<_> = std::iter::from_fn(|| waiting.take()).map(|entry| short(&entry)).collect();
        assert_eq!(rest, ["bbbb", "cccc", "2 dropped", "f", "1 dropped", "the end"]);
        assert!(waiting.is_done());
    }

    #[test]
    fn lines_that_were_dropped_last_are_reported_too() {
        let (writer, lines) = stalled();
        writer.line(vec![b'x'; ROOM + 1]);
        assert!(lines.recv().unwrap().starts_with("program: 1 lines were dropped:"));
        assert!(writer.written_within(PATIENCE));
    }

    #[test]
    fn lines_that_the_stream_refuses_are_reported_once_it_accepts_some() {
        let (accepts, (sender, lines)) = (Arc::new(AtomicBool::new(false)), channel());
        let open = Arc::clone(&accepts);
        let writer = LossyWriter::into("program", move |line| match open.load(Ordering::SeqCst) {
            true => sender.send(String::from_utf8(line.to_vec()).unwrap()).map_err(io::Error::other),
            false => Err(io::ErrorKind::StorageFull.into()),
        });
        for line in ["a\n", "b\n", "c\n"] {
            writer.line(line.into());
        }
        assert!(writer.written_within(PATIENCE), "the writer waits for a stream that refuses lines");
        accepts.store(true, Ordering::SeqCst);
        writer.line("d\n".into());
        assert_eq!(lines.recv().unwrap(), "d\n");
        assert!(lines.recv().unwrap().starts_with("program: 3 lines were dropped:"));
    }

    #[test]
    fn the_thread_takes_no_signals() {
        let (sender, masks) = channel();
        let writer = LossyWriter::into("program", move |_| {
            sender.send(SigSet::thread_get_mask().unwrap()).map_err(io::Error::other)
        });
        writer.line(Vec::new());
        assert!(masks.recv().unwrap().contains(nix::sys::signal::Signal::SIGTERM));
        assert!(!SigSet::thread_get_mask().unwrap().contains(nix::sys::signal::Signal::SIGTERM));
    }
}
