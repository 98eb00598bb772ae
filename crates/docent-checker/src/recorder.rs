use crate::event::{AttemptId, CallId, ClientId, Event, What};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Recorder of the events of a run, in the order in which they happen. Clones write into the same record.
#[derive(Clone)]
pub struct Recorder {
    inner: Arc<Inner>,
}

struct Inner {
    now: Box<dyn Fn() -> Duration + Send + Sync>,
    pages: Mutex<Pages>,
}

#[derive(Default)]
struct Pages {
    events: Vec<Event>,
    attempts: u64,
    calls: u64,
}

impl Recorder {
    /// A recorder that asks `now` for the time since the run began, which must never go back.
    pub fn new(now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self { inner: Arc::new(Inner { now: Box::new(now), pages: Mutex::default() }) }
    }

    /// Takes down an event of the world as a whole.
    pub fn world(&self, what: What) {
        self.write(None, what);
    }

    /// The scribe of a client.
    pub fn scribe(&self, client: ClientId) -> Scribe {
        Scribe { recorder: self.clone(), client }
    }

    /// The time since the run began.
    pub fn now(&self) -> Duration {
        (self.inner.now)()
    }

    /// The events taken down so far.
    pub fn events(&self) -> Vec<Event> {
        self.pages().events.clone()
    }

    fn write(&self, client: Option<ClientId>, what: What) {
        let at = self.now();
        self.pages().events.push(Event { at, client, what });
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.inner.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("events", &self.pages().events.len()).finish_non_exhaustive()
    }
}

/// Scribe that takes down the events of one client.
#[derive(Debug, Clone)]
pub struct Scribe {
    recorder: Recorder,
    client: ClientId,
}

impl Scribe {
    /// The client it writes for.
    pub fn client(&self) -> ClientId {
        self.client
    }

    /// The time since the run began.
    pub fn now(&self) -> Duration {
        self.recorder.now()
    }

    /// Takes an event down.
    pub fn write(&self, what: What) {
        self.recorder.write(Some(self.client), what);
    }

    /// A number for a new attempt.
    pub fn attempt(&self) -> AttemptId {
        let mut pages = self.recorder.pages();
        pages.attempts += 1;
        AttemptId(pages.attempts)
    }

    /// A number for a new call.
    pub fn call(&self) -> CallId {
        let mut pages = self.recorder.pages();
        pages.calls += 1;
        CallId(pages.calls)
    }
}
