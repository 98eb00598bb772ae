use super::expire::Sessions;
use super::lane::Flow;
use super::rule::Rule;
use super::trace::{Direction, Fate, Traced};
use docent_proto::Request;
use std::num::NonZeroU32;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// Fate of the notes about frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trace {
    /// They are kept as long as the proxy.
    Kept,
    /// None are taken.
    Dropped,
}

/// State that all links of a proxy share.
#[derive(Debug)]
pub(super) struct State {
    pub(super) to_server: watch::Sender<Settings>,
    pub(super) to_client: watch::Sender<Settings>,
    /// `None` where nobody looks at it: it grows with each frame.
    trace: Option<watch::Sender<Vec<Traced>>>,
    pub(super) sessions: Sessions,
    /// True while new links are reset as soon as they are made.
    pub(super) refuses: AtomicBool,
    /// The longest session timeout that servers are asked for.
    pub(super) longest_timeout: Mutex<Option<Duration>>,
    rules: Mutex<Vec<Rule>>,
    /// The link is reset in place of the event after so many.
    last_event: Mutex<Option<(usize, watch::Sender<bool>)>>,
}

/// Settings for the frames of one direction.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Settings {
    pub(super) flow: Flow,
    pub(super) delay: Duration,
    /// Most bytes that pass in a second.
    pub(super) bytes_per_second: Option<NonZeroU32>,
}

impl State {
    pub(super) fn new(sessions: Sessions, trace: Trace) -> Self {
        Self {
            to_server: watch::Sender::default(),
            to_client: watch::Sender::default(),
            trace: (trace == Trace::Kept).then(watch::Sender::default),
            sessions,
            refuses: AtomicBool::default(),
            longest_timeout: Mutex::default(),
            rules: Mutex::default(),
            last_event: Mutex::default(),
        }
    }

    pub(super) fn settings(&self, direction: Direction) -> &watch::Sender<Settings> {
        match direction {
            Direction::ToServer => &self.to_server,
            Direction::ToClient => &self.to_client,
        }
    }

    pub(super) fn add(&self, rule: Rule) {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner).push(rule);
    }

    /// Every rule counts the request; the first that it completes is taken out and returned.
    pub(super) fn rule_for(&self, request: &Request) -> Option<Rule> {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let met: Vec<bool> = rules.iter_mut().map(|rule| rule.meets(request)).collect();
        met.iter().position(|met| *met).map(|index| rules.remove(index))
    }

    /// Lets so many events pass, and resets the link in place of the next.
    pub(super) fn reset_after_events(&self, count: usize, fired: watch::Sender<bool>) {
        *self.last_event.lock().unwrap_or_else(PoisonError::into_inner) = Some((count, fired));
    }

    /// Counts an event; true when the link must be reset in its place.
    pub(super) fn resets_at_event(&self) -> bool {
        let mut last = self.last_event.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *last {
            None => return false,
            Some((0, fired)) => fired.send_replace(true),
            Some((left, _)) => {
                *left -= 1;
                return false;
            }
        };
        *last = None;
        true
    }

    /// The frames so far, and those to come; nothing where the trace is not kept.
    pub(super) fn trace(&self) -> watch::Receiver<Vec<Traced>> {
        self.trace.as_ref().map_or_else(|| watch::channel(Vec::new()).1, watch::Sender::subscribe)
    }

    /// Adds a frame to the trace and returns its index there.
    pub(super) fn record(&self, frame: Traced) -> usize {
        let mut index = 0;
        if let Some(trace) = &self.trace {
            trace.send_modify(|trace| {
                index = trace.len();
                trace.push(frame);
            });
        }
        index
    }

    pub(super) fn mark_swallowed(&self, index: usize) {
        if let Some(trace) = &self.trace {
            trace.send_modify(|trace| trace[index].fate = Fate::Swallowed);
        }
    }
}
