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

/// Whether the frames are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trace {
    /// Records are kept as long as the proxy.
    Kept,
    /// Nothing is recorded.
    Dropped,
}

/// State that all links of a proxy share.
#[derive(Debug)]
pub(super) struct State {
    pub(super) to_server: watch::Sender<Settings>,
    pub(super) to_client: watch::Sender<Settings>,
    /// Recorded frames, which grow with each frame; `None` if they are not kept.
    trace: Option<watch::Sender<Vec<Traced>>>,
    pub(super) sessions: Sessions,
    /// Whether new links are reset immediately.
    pub(super) refuses: AtomicBool,
    /// Maximum session timeout that is requested from servers.
    pub(super) longest_timeout: Mutex<Option<Duration>>,
    rules: Mutex<Vec<Rule>>,
    /// Number of events to pass before the link is reset in place of the next one.
    last_event: Mutex<Option<(usize, watch::Sender<bool>)>>,
}

/// Settings for the frames of one direction.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Settings {
    pub(super) flow: Flow,
    pub(super) delay: Duration,
    /// Maximum bytes per second.
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

    /// Counts the request for every rule. Removes and returns the first rule that the request triggers.
    pub(super) fn rule_for(&self, request: &Request) -> Option<Rule> {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let met: Vec<bool> = rules.iter_mut().map(|rule| rule.meets(request)).collect();
        met.iter().position(|met| *met).map(|index| rules.remove(index))
    }

    /// Passes `count` events, and resets the link in place of the next one.
    pub(super) fn reset_after_events(&self, count: usize, fired: watch::Sender<bool>) {
        *self.last_event.lock().unwrap_or_else(PoisonError::into_inner) = Some((count, fired));
    }

    /// Counts an event. Returns whether the link must be reset in its place.
    pub(super) fn resets_at_event(&self) -> bool {
        let mut last = self.last_event.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *last {
            None => return false,
            Some((0, fired)) => fired.send_replace(true),
            Some((remaining, _)) => {
                *remaining -= 1;
                return false;
            }
        };
        *last = None;
        true
    }

    /// Returns the frames so far, and those to come; none if the trace is not kept.
    pub(super) fn trace(&self) -> watch::Receiver<Vec<Traced>> {
        self.trace.as_ref().map_or_else(|| watch::channel(Vec::new()).1, watch::Sender::subscribe)
    }

    /// Adds a frame to the trace and returns its index.
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
