use super::Client;
use crate::task::call_hook;
use crate::time::{Clock, Timestamp};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::runtime::{Handle, Id};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Runner of a view's hooks, that is, of the codec, filter or validation that the view's task calls. It calls
/// them on a thread for blocking code, so that a slow hook delays only its own view, and never the session's
/// heartbeat (decision 12).
///
/// # On drop
/// The view's [`ViewLag`] reports from then on that the view has ended.
#[derive(Debug)]
pub struct Hooks {
    client: Arc<str>,
    path: Arc<str>,
    /// `None` if hooks are called in place.
    threads: Option<HookThreads>,
    lag: ViewLag,
}

/// Time after which a hook counts as slow: it is logged, and the view is stale.
pub(super) const LONG: Duration = Duration::from_secs(1);

impl Hooks {
    /// Creates the runner for the hooks of a view of the node at `path`.
    pub fn new(client: &Client, path: &str) -> Self {
        let shared = client.shared();
        let threads = (!shared.config.inline_hooks).then(|| HookThreads::of(&shared.runtime));
        Self {
            client: Arc::clone(&shared.label),
            path: shared.namespace.join(path).into(),
            threads,
            lag: ViewLag::new(&shared.config.clock),
        }
    }

    /// Returns the lag of the view, for its handles.
    pub fn lag(&self) -> ViewLag {
        self.lag.clone()
    }

    /// Calls `code`, which calls hooks, with the state of the view's task, and returns the state. Returns
    /// `None` if the runtime is shutting down and the task must end. A panic in `code` is logged, and leaves
    /// the state as it was at the panic.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the state is lost.
    pub async fn run<S: Send + 'static>(
        &self,
        mut state: S,
        code: impl FnOnce(&mut S) + Send + 'static,
    ) -> Option<S> {
        let Some(threads) = &self.threads else {
            self.run_inline(&mut state, code);
            return Some(state);
        };
        let (path, (sender, mut done)) = (Arc::clone(&self.path), oneshot::channel());
        self.lag.begin();
        threads.call(move || {
            let _ = call_hook("view", &path, || code(&mut state));
            let unwanted = sender.send(state);
            let _ = call_hook("drop", &path, || drop(unwanted));
        });
        let (mut waited, mut pause) = (Duration::ZERO, PATIENCE);
        let state = loop {
            match timeout(pause, &mut done).await {
                Ok(state) => break state,
                Err(_) => threads.help(),
            }
            waited += pause;
            if waited >= LONG && waited - pause < LONG {
                // Event: A codec, filter or validation of a cache or view has been running for a second. The
                // view shows old content until the call returns; other views and the session are not
                // affected.
                // Action: Find out why the application's codec, filter or validation for this path is slow or
                // blocked.
                tracing::warn!(
                    target: "docent::client",
                    client = %self.client,
                    path = %self.path,
                    "a codec, filter or validation is slow; the view stays stale until the call returns"
                );
            }
            pause = (pause * 2).min(LONG);
        };
        self.lag.end();
        state.ok()
    }

    /// Calls `code`, which calls no slow hooks. A panic in `code` is logged.
    pub fn run_inline<S>(&self, state: &mut S, code: impl FnOnce(&mut S)) {
        let _ = call_hook("view", &self.path, || code(state));
    }
}

impl Drop for Hooks {
    fn drop(&mut self) {
        self.lag.ended();
    }
}

/// Time for which a view has lagged behind its cache, because one of its hooks is slow or its task has ended.
/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct ViewLag {
    clock: Arc<dyn Clock>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Time at which the running hook began, or the task ended.
    since: Option<Timestamp>,
    has_ended: bool,
}

impl ViewLag {
    pub(super) fn new(clock: &Arc<dyn Clock>) -> Self {
        Self { clock: Arc::clone(clock), state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a hook begins.
    pub(super) fn begin(&self) {
        self.state().since = Some(self.clock.now());
    }

    /// Records that a hook has ended.
    pub(super) fn end(&self) {
        self.state().since = None;
    }

    /// Records that the view's task has ended.
    pub(super) fn ended(&self) {
        let mut state = self.state();
        state.has_ended = true;
        state.since.get_or_insert_with(|| self.clock.now());
    }

    /// Returns the time since the view fell behind; `None` if it is not behind, and in the first second of a
    /// hook.
    pub fn behind_for(&self) -> Option<Duration> {
        let State { since, has_ended } = *self.state();
        let behind = self.clock.now().since(since?);
        (has_ended || behind >= LONG).then_some(behind)
    }

    /// Returns true if the view is behind.
    pub fn is_behind(&self) -> bool {
        self.behind_for().is_some()
    }
}

/// Threads of a runtime that call the hooks of all views. A single thread calls them sequentially, because
/// waking a thread for each hook costs more than most hooks do. While a hook takes longer than [`PATIENCE`],
/// additional threads call the others (decision 12).
#[derive(Debug, Clone)]
pub(super) struct HookThreads {
    runtime: Handle,
    queue: Arc<Mutex<Queue>>,
}

/// Time for which a hook may delay the hooks of other views.
pub(super) const PATIENCE: Duration = Duration::from_millis(2);

/// The queues of all runtimes that have views.
static QUEUES: Mutex<Vec<(Id, Weak<Mutex<Queue>>)>> = Mutex::new(Vec::new());

type Job = Box<dyn FnOnce() + Send>;

/// Hooks that wait for a thread.
struct Queue {
    jobs: VecDeque<Job>,
    /// Number of threads that were requested and have not ended.
    threads: usize,
    /// Time at which a thread was last requested or took a job.
    progress: Instant,
}

impl HookThreads {
    /// Returns the threads of this runtime.
    pub(super) fn of(runtime: &Handle) -> Self {
        let mut queues = lock(&QUEUES);
        queues.retain(|(_, queue)| queue.strong_count() > 0);
        let found = queues.iter().find(|(id, _)| *id == runtime.id()).and_then(|(_, queue)| queue.upgrade());
        let queue = found.unwrap_or_else(|| {
            let queue = Arc::new(Mutex::new(Queue::new(Instant::now())));
            queues.push((runtime.id(), Arc::downgrade(&queue)));
            queue
        });
        Self { runtime: runtime.clone(), queue }
    }

    /// Calls `job` on a thread, or drops it if the runtime is shutting down.
    pub(super) fn call(&self, job: impl FnOnce() + Send + 'static) {
        let needs_thread = lock(&self.queue).push(Box::new(job), Instant::now());
        if needs_thread {
            self.start();
        }
    }

    /// Starts an additional thread if a job is waiting. Waiting callers call this repeatedly once
    /// [`PATIENCE`] has passed, so that no job waits for a hook that does not end.
    pub(super) fn help(&self) {
        let is_needed = lock(&self.queue).help(Instant::now());
        if is_needed {
            self.start();
        }
    }

    fn start(&self) {
        let thread = Thread { queue: Arc::clone(&self.queue), has_ended: false };
        self.runtime.spawn_blocking(move || thread.run());
    }
}

impl Queue {
    fn new(now: Instant) -> Self {
        Self { jobs: VecDeque::new(), threads: 0, progress: now }
    }

    /// Adds a job. Returns true if a thread must be started for it.
    fn push(&mut self, job: Job, now: Instant) -> bool {
        self.jobs.push_back(job);
        let is_held_up = self.threads == 0 || now.saturating_duration_since(self.progress) >= PATIENCE;
        is_held_up && self.help(now)
    }

    /// Returns true if a job is waiting and a thread must be started for it.
    fn help(&mut self, now: Instant) -> bool {
        if self.jobs.is_empty() {
            return false;
        }
        (self.threads, self.progress) = (self.threads + 1, now);
        true
    }

    /// Returns the next job. If it returns `None`, the calling thread ends.
    fn pop(&mut self, now: Instant) -> Option<Job> {
        let job = self.jobs.pop_front();
        match job {
            Some(_) => self.progress = now,
            None => self.threads -= 1,
        }
        job
    }

    /// Returns the jobs that will never run, because a thread was not started and there is no other.
    fn not_started(&mut self) -> VecDeque<Job> {
        self.threads -= 1;
        if self.threads == 0 { std::mem::take(&mut self.jobs) } else { VecDeque::new() }
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("jobs", &self.jobs.len()).field("threads", &self.threads).finish()
    }
}

/// A requested thread.
///
/// # On drop
/// A runtime that is shutting down drops it before it has run. If it was the last thread, the jobs are
/// dropped.
struct Thread {
    queue: Arc<Mutex<Queue>>,
    has_ended: bool,
}

impl Thread {
    fn run(mut self) {
        while let Some(job) = self.next() {
            job();
        }
        self.has_ended = true;
    }

    fn next(&self) -> Option<Job> {
        lock(&self.queue).pop(Instant::now())
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if !self.has_ended {
            // Dropped after the lock is released, because a job owns the user's values.
            let jobs = lock(&self.queue).not_started();
            drop(jobs);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TokioClock;
    use crate::client::Client;
    use std::sync::mpsc;
    use tokio::sync::oneshot;

    #[tokio::test(start_paused = true)]
    async fn a_view_is_behind_while_a_hook_takes_long_and_once_its_task_has_ended() {
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::new());
        let lag = ViewLag::new(&clock);
        lag.begin();
        assert!(!lag.is_behind());
        tokio::time::advance(LONG * 2).await;
        assert_eq!(lag.behind_for(), Some(LONG * 2));
        lag.end();
        assert!(!lag.is_behind());
        lag.ended();
        assert_eq!(lag.behind_for(), Some(Duration::ZERO));
    }

    fn job() -> Job {
        Box::new(|| {})
    }

    #[test]
    fn quick_hooks_share_one_thread() {
        let start = Instant::now();
        let mut queue = Queue::new(start);
        assert!(queue.push(job(), start));
        assert!((0..100).all(|_| !queue.push(job(), start)));
        let called = std::iter::from_fn(|| queue.pop(start)).count();
        assert_eq!((called, queue.threads), (101, 0));
        assert!(queue.push(job(), start));
    }

    #[test]
    fn a_slow_hook_has_its_own_thread() {
        let start = Instant::now();
        let mut queue = Queue::new(start);
        assert!(queue.push(job(), start));
        drop(queue.pop(start).unwrap());
        assert!(!queue.push(job(), start), "the running hook may return in a moment");
        assert!(queue.help(start), "the running hook did not return in time");
        drop(queue.pop(start).unwrap());
        assert!(!queue.help(start), "no job waits");
        assert!(queue.push(job(), start + PATIENCE));
        assert_eq!(queue.threads, 3);
    }

    #[tokio::test]
    async fn hooks_continue_beside_one_that_does_not_end() {
        let threads = HookThreads::of(&Handle::current());
        let (release, released) = mpsc::channel::<()>();
        let (begun, has_begun) = oneshot::channel();
        threads.call(move || {
            begun.send(()).unwrap();
            let _ = released.recv();
        });
        has_begun.await.unwrap();
        let (done, is_done) = oneshot::channel();
        HookThreads::of(&Handle::current()).call(move || done.send(()).unwrap());
        threads.help();
        is_done.await.unwrap();
        drop(release);
    }

    #[tokio::test]
    async fn a_view_continues_beside_endless_hooks_of_dropped_views() {
        let client = Client::builder("127.0.0.1:1").build().unwrap();
        let (hooks, threads) = (Hooks::new(&client, "/a"), HookThreads::of(&Handle::current()));
        let releases: Vec<_> = (0..3)
            .map(|_| {
                let (release, released) = mpsc::channel::<()>();
                threads.call(move || {
                    let _ = released.recv();
                });
                release
            })
            .collect();
        assert_eq!(hooks.run(1, |state| *state += 1).await, Some(2));
        drop(releases);
    }

    #[test]
    fn a_runtime_that_is_shut_down_drops_hooks() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let threads = HookThreads::of(runtime.handle());
        drop(runtime);
        let (called, is_called) = mpsc::channel();
        threads.call(move || called.send(()).unwrap());
        assert!(is_called.recv().is_err());
        assert_eq!(lock(&threads.queue).threads, 0);
    }
}
