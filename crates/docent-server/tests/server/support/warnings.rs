//! Collects the warnings that a server logs during a test. The server runs on the thread of the test, so the
//! warnings come from that thread.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, OnceLock};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{DefaultGuard, Interest, set_default};
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};

type Fields = BTreeMap<String, String>;

/// Warnings about limits.
pub(crate) struct Warnings {
    seen: Arc<Mutex<Vec<Fields>>>,
    _guard: DefaultGuard,
}

impl Warnings {
    /// Collects the warnings from now on.
    pub(crate) fn watch() -> Self {
        // If there were a single subscriber, a thread without one could disable a warning for all threads.
        static OTHERS: OnceLock<[Dispatch; 2]> = OnceLock::new();
        OTHERS.get_or_init(|| [(); 2].map(|()| Dispatch::new(Log(Arc::default()))));
        let seen = Arc::new(Mutex::new(Vec::new()));
        Self { _guard: set_default(Log(Arc::clone(&seen))), seen }
    }

    /// Returns the warnings about one limit.
    pub(crate) fn about(&self, rule: &str) -> Vec<Fields> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|fields| fields.get("rule").is_some_and(|name| name == rule)).cloned().collect()
    }

    /// Returns the number of warnings with this message.
    pub(crate) fn saying(&self, message: &str) -> usize {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|fields| fields.get("message").is_some_and(|said| said == message)).count()
    }

    /// Asserts that a warning about `rule` was logged, with a value above its limit.
    pub(crate) fn assert_about(&self, rule: &str, limit: usize) {
        let about = self.about(rule);
        assert!(!about.is_empty(), "{rule}: {:?}", self.seen.lock().unwrap());
        assert_eq!(about[0]["limit"], limit.to_string());
        assert!(about[0]["value"].parse::<usize>().unwrap() >= limit, "{about:?}");
        assert!(about[0]["peer"].starts_with("127.0.0.1:"), "{about:?}");
    }
}

struct Log(Arc<Mutex<Vec<Fields>>>);

impl Subscriber for Log {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() == Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Visited::default();
        event.record(&mut fields);
        self.0.lock().unwrap().push(fields.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Visited(Fields);

impl Visit for Visited {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}
