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

/// A standard stream that is written by a thread of its own. Callers never wait, even if a pipe is full or a
/// terminal is stopped. Each `write` is one line; lines are written in the order of the calls.
///
/// Lines are dropped while more than a megabyte waits, or if the stream refuses them. As soon as the stream
/// accepts lines again, one of them reports how many are missing. Nothing here fails or panics.
///
/// A program that logs to a standard stream can use this as the writer of `tracing_subscriber`, so that a
/// reader that stalls cannot stall a server in the same process. The thread is started with the first line.
#[derive(Clone)]
pub struct LossyWriter {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    waiting: Mutex<Waiting>,
    /// Notified of each change.
    changed: Condvar,
    sink: Box<Sink>,
}

/// Writes a line as a whole, or fails.
type Sink = dyn Fn(&[u8]) -> io::Result<()> + Send + Sync;

/// Part of the output.
#[derive(Debug)]
enum Entry {
    Line(Vec<u8>),
    /// Number of lines that were dropped at this place.
    Dropped(u64),
}

/// Entries that wait to be written.
#[derive(Debug, Default)]
struct Waiting {
    entries: VecDeque<Entry>,
    bytes: usize,
    /// Number of lines that were dropped behind the last entry.
    dropped: u64,
    /// Number of lines that the stream refused since it last accepted one.
    refused: u64,
    /// True while an entry is being written.
    is_writing: bool,
    has_thread: bool,
}

impl LossyWriter {
    /// Standard error of this process. `name` begins the line that reports dropped lines.
    pub fn stderr(name: &str) -> Self {
        Self::into(name, |line| Descriptor(stdio::stderr()).write_all(line))
    }

    /// Standard output of this process.
    pub fn stdout(name: &str) -> Self {
        Self::into(name, |line| Descriptor(stdio::stdout()).write_all(line))
    }

    fn into(name: &str, sink: impl Fn(&[u8]) -> io::Result<()> + Send + Sync + 'static) -> Self {
        let (waiting, changed, sink) = (Mutex::default(), Condvar::new(), Box::new(sink));
        Self { shared: Arc::new(Shared { name: name.to_owned(), waiting, changed, sink }) }
    }

    /// Queues a line, unless too much waits already.
    pub fn line(&self, line: Vec<u8>) {
        self.push(line, ROOM);
    }

    /// Queues a line, however much waits: for the few that report how the program ended.
    pub fn last_line(&self, line: Vec<u8>) {
        self.push(line, usize::MAX);
    }

    /// Waits until all lines are written, but no longer than `limit`. Returns whether they are.
    pub fn written_within(&self, limit: Duration) -> bool {
        let mut waiting = self.shared.lock();
        if !waiting.is_done() && !self.has_thread(&mut waiting) {
            // The process cannot start a thread. This is the last chance to write.
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

    /// Starts the thread unless it runs. False if the process cannot have one now.
    fn has_thread(&self, waiting: &mut Waiting) -> bool {
        waiting.has_thread = waiting.has_thread || self.start().is_ok();
        waiting.has_thread
    }

    /// Starts the thread. It takes no signals: a signal for the process is for the threads that wait for it.
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

    /// Writes entries as they come.
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
    /// True if nothing is left to write.
    fn is_done(&self) -> bool {
        self.entries.is_empty() && self.dropped == 0 && !self.is_writing
    }

    /// Adds a line if there is `room` for it.
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

    /// Takes the next entry.
    fn take(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front();
        if let Some(Entry::Line(line)) = &entry {
            self.bytes -= line.len();
        }
        entry.or_else(|| self.note())
    }

    /// Entry for the lines that were dropped behind the last one.
    fn note(&mut self) -> Option<Entry> {
        let count = std::mem::take(&mut self.dropped);
        (count > 0).then_some(Entry::Dropped(count))
    }

    /// Reports the lines that the stream refused, now that it accepts some.
    fn report_refused(&mut self) {
        let count = std::mem::take(&mut self.refused);
        if count > 0 {
            self.entries.push_front(Entry::Dropped(count));
        }
    }
}

impl Entry {
    /// Number of lines that are missing without it.
    fn lines(&self) -> u64 {
        match self {
            Self::Line(_) => 1,
            Self::Dropped(count) => *count,
        }
    }
}

/// Descriptor of a standard stream, without the lock of the standard library: a panic elsewhere can be
/// reported while a write stalls.
struct Descriptor(BorrowedFd<'static>);

impl Write for Descriptor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match rustix::io::write(self.0, bytes) {
                // Another process that shares the terminal or the pipe may have made it non-blocking.
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
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};

    const PATIENCE: Duration = Duration::from_secs(30);

    /// A stream whose reader takes a line when it likes.
    fn stalled() -> (LossyWriter, Receiver<String>) {
        let (sender, lines): (SyncSender<String>, _) = sync_channel(0);
        let write = move |line: &[u8]| {
            sender.send(String::from_utf8(line.to_vec()).unwrap()).map_err(io::Error::other)
        };
        (LossyWriter::into("program", write), lines)
    }

    /// The text of an entry, shortened to what tells it from others.
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
        assert!(!writer.written_within(Duration::from_millis(1)), "no reader has taken them");
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
        assert!(writer.written_within(PATIENCE), "a stream that refuses lines is not waited for");
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
