use crate::event::{AttemptId, CallId, ClientId, Event, EventKind};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Recorder of the events of a run, in the order in which they happen. Clones write to the same record.
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
    /// Creates a recorder that asks `now` for the time since the run began, which must never decrease.
    pub fn new(now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self { inner: Arc::new(Inner { now: Box::new(now), pages: Mutex::default() }) }
    }

    /// Records an event that concerns the whole world.
    pub fn world(&self, kind: EventKind) {
        self.write(None, kind);
    }

    /// Returns the recorder of a client.
    pub fn client(&self, client: ClientId) -> ClientRecorder {
        ClientRecorder { recorder: self.clone(), client }
    }

    /// Returns the time since the run began.
    pub fn now(&self) -> Duration {
        (self.inner.now)()
    }

    /// Returns the events recorded so far.
    pub fn events(&self) -> Vec<Event> {
        self.pages().events.clone()
    }

    fn write(&self, client: Option<ClientId>, kind: EventKind) {
        let at = self.now();
        self.pages().events.push(Event { at, client, kind });
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

/// Recorder of the events of one client.
#[derive(Debug, Clone)]
pub struct ClientRecorder {
    recorder: Recorder,
    client: ClientId,
}

impl ClientRecorder {
    /// Returns the client whose events this records.
    pub fn client(&self) -> ClientId {
        self.client
    }

    /// Returns the time since the run began.
    pub fn now(&self) -> Duration {
        self.recorder.now()
    }

    /// Records an event.
    pub fn write(&self, kind: EventKind) {
        self.recorder.write(Some(self.client), kind);
    }

    /// Returns the number of a new attempt.
    pub fn attempt(&self) -> AttemptId {
        let mut pages = self.recorder.pages();
        pages.attempts += 1;
        AttemptId(pages.attempts)
    }

    /// Returns the number of a new call.
    pub fn call(&self) -> CallId {
        let mut pages = self.recorder.pages();
        pages.calls += 1;
        CallId(pages.calls)
    }
}
