use crate::event::{AttemptId, CallId, ClientId, Event, EventKind};
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
    pub fn world(&self, kind: EventKind) {
        self.write(None, kind);
    }

    /// The recorder of a client.
    pub fn client(&self, client: ClientId) -> ClientRecorder {
        ClientRecorder { recorder: self.clone(), client }
    }

    /// The time since the run began.
    pub fn now(&self) -> Duration {
        (self.inner.now)()
    }

    /// The events taken down so far.
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
    /// The client it writes for.
    pub fn client(&self) -> ClientId {
        self.client
    }

    /// The time since the run began.
    pub fn now(&self) -> Duration {
        self.recorder.now()
    }

    /// Takes an event down.
    pub fn write(&self, kind: EventKind) {
        self.recorder.write(Some(self.client), kind);
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
