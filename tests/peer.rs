//! A client of somebody else's in a process of its own, and its orders.

use std::collections::HashMap;
use std::future::Future;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};

/// Process with a client of somebody else's that does what it is told, line by line.
///
/// Once it is connected it says `ready`. Each line that it reads is `NUMBER THING VERB ARGUMENTS`, and is
/// answered when it is done: `NUMBER ok VALUES`, `NUMBER no`, or `NUMBER error WHAT`. A thing is made by the
/// verb `make KIND ARGUMENTS`.
///
/// # On drop
/// The process is killed. It also ends by itself when the test's process does.
pub struct Peer {
    process: Child,
    lines: mpsc::UnboundedSender<String>,
    told: Arc<Told>,
    things: AtomicU64,
}

/// Orders that were given and are not answered yet.
#[derive(Default)]
struct Told {
    count: AtomicU64,
    unanswered: Mutex<HashMap<u64, oneshot::Sender<String>>>,
}

/// Recipe of a [`Peer`] at work.
pub struct Theirs<'a> {
    peer: &'a Peer,
    name: u64,
}

/// Order that a [`Peer`] carries out.
pub struct Doing {
    what: String,
    answer: oneshot::Receiver<String>,
}

impl Peer {
    /// Starts the program and waits until it is connected.
    ///
    /// # Panics
    /// When it does not start: with its last words, and `missing`, which says what to install.
    pub async fn start(program: &mut Command, missing: &str) -> Self {
        let line = format!("{:?}", program.as_std());
        let mut process = program
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot run {line} ({error}): {missing}"));
        let input = process.stdin.take().expect("its input is piped");
        let mut output = BufReader::new(process.stdout.take().expect("its output is piped"));
        let mut first = String::new();
        answered(output.read_line(&mut first)).await.expect("its output can be read");
        if first != "ready\n" {
            panic!("{line} did not start: {first}{}{missing}", last_words(&mut process).await);
        }
        let told = Arc::new(Told::default());
        let (lines, to_write) = mpsc::unbounded_channel();
        tokio::spawn(write(input, to_write));
        tokio::spawn(answer(output, Arc::clone(&told)));
        Self { process, lines, told, things: AtomicU64::new(0) }
    }

    /// Makes one of its recipes: a kind that its program knows, with its arguments.
    ///
    /// # Panics
    /// When it cannot.
    pub async fn make(&self, what: &str) -> Theirs<'_> {
        let theirs = Theirs { peer: self, name: self.things.fetch_add(1, Ordering::Relaxed) };
        theirs.done(&format!("make {what}")).await;
        theirs
    }

    /// Ends the process as a crash does.
    ///
    /// # Panics
    /// When it has ended.
    pub fn kill(&mut self) {
        self.process.start_kill().expect("it has not ended");
    }
}

impl Theirs<'_> {
    /// Tells it to do something, now.
    ///
    /// # Panics
    /// When the process has ended.
    pub fn tell(&self, what: &str) -> Doing {
        let told = &self.peer.told;
        let number = told.count.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        told.unanswered().insert(number, sender);
        self.peer.lines.send(format!("{number} {} {what}\n", self.name)).expect("its process is there");
        Doing { what: what.to_owned(), answer }
    }

    /// Has it do something, and returns what came of that.
    ///
    /// # Panics
    /// When it fails.
    pub async fn done(&self, what: &str) -> Vec<String> {
        self.tell(what).done().await
    }

    /// Has it try something in vain.
    ///
    /// # Panics
    /// When it succeeds.
    pub async fn refused(&self, what: &str) {
        self.tell(what).refused().await;
    }
}

impl Doing {
    /// True when it was answered.
    pub fn is_finished(&self) -> bool {
        !self.answer.is_empty()
    }

    /// Waits until it is done, and returns what came of it.
    ///
    /// # Panics
    /// When it fails.
    pub async fn done(self) -> Vec<String> {
        let (what, answer) = self.answer().await;
        let mut words = answer.split(' ').map(str::to_owned);
        assert_eq!(words.next().as_deref(), Some("ok"), "{what}: {answer}");
        words.collect()
    }

    /// Waits until it was tried in vain.
    ///
    /// # Panics
    /// When it succeeds.
    pub async fn refused(self) {
        let (what, answer) = self.answer().await;
        assert_eq!(answer, "no", "{what}");
    }

    /// Waits until it has failed, and returns the error.
    ///
    /// # Panics
    /// When it is answered.
    pub async fn failed(self) -> String {
        let (what, answer) = self.answer().await;
        let error = answer.strip_prefix("error ").map(str::to_owned);
        error.unwrap_or_else(|| panic!("{what}: {answer}"))
    }

    async fn answer(self) -> (String, String) {
        let answer = answered(self.answer).await;
        let answer = answer.unwrap_or_else(|_| panic!("{}: its process has ended", self.what));
        (self.what, answer)
    }
}

impl Told {
    fn unanswered(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<String>>> {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn write(mut input: ChildStdin, mut lines: mpsc::UnboundedReceiver<String>) {
    while let Some(line) = lines.recv().await {
        if input.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn answer(output: BufReader<ChildStdout>, told: Arc<Told>) {
    let mut lines = output.lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let Some((number, answer)) = line.split_once(' ') else { continue };
        let sender = number.parse().ok().and_then(|number| told.unanswered().remove(&number));
        // Nobody may wait for it any more.
        let _ = sender.map(|sender| sender.send(answer.to_owned()));
    }
    told.unanswered().clear();
}

/// Last output of a process that is of no use.
async fn last_words(process: &mut Child) -> String {
    // It may have ended by itself.
    let _ = process.start_kill();
    let mut text = String::new();
    if let Some(errors) = &mut process.stderr {
        let _ = errors.read_to_string(&mut text).await;
    }
    text
}

/// Waits for another program, which may start slowly and pauses between its attempts as it likes.
async fn answered<F: Future>(answer: F) -> F::Output {
    const PATIENCE: Duration = Duration::from_secs(180);
    tokio::time::timeout(PATIENCE, answer).await.expect("the other program answers before the patience ends")
}
