use super::event::Event;
use std::collections::BTreeSet;

/// Watch events of one step, up to a limit.
#[derive(Debug)]
pub(crate) struct Events {
    events: Vec<Event>,
    most: usize,
    /// Sessions with events above the limit, which are not sent.
    missing: BTreeSet<i64>,
    /// Those of the `missing` sessions whose watches are still set.
    watching: Vec<i64>,
}

impl Default for Events {
    fn default() -> Self {
        Self { events: Vec::new(), most: usize::MAX, missing: BTreeSet::new(), watching: Vec::new() }
    }
}

impl Events {
    /// Limits the number of events from now on.
    pub(crate) fn limit(&mut self, most: usize) {
        self.most = most;
    }

    pub(crate) fn push(&mut self, event: Event) {
        if self.events.len() < self.most {
            self.events.push(event);
        } else if self.missing.insert(event.session) {
            self.watching.push(event.session);
        }
    }

    /// Returns the sessions that have lost events since the last call. Their links will be closed.
    pub(crate) fn take_flooded(&mut self) -> Vec<i64> {
        std::mem::take(&mut self.watching)
    }

    pub(crate) fn as_slice(&self) -> &[Event] {
        &self.events
    }

    #[cfg(test)]
    pub(crate) fn into_vec(self) -> Vec<Event> {
        self.events
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Returns the sessions that do not get all their events.
    pub(crate) fn missing(&self) -> impl Iterator<Item = i64> {
        self.missing.iter().copied()
    }
}

impl Extend<Event> for Events {
    fn extend<T: IntoIterator<Item = Event>>(&mut self, events: T) {
        events.into_iter().for_each(|event| self.push(event));
    }
}
