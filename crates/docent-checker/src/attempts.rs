use crate::attempt_trace::AttemptTrace;
use crate::event::{AttemptId, ClientId, Event, EventKind};
use crate::timeline::Timeline;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// One of the attempts of a client at a path.
#[derive(Debug)]
pub(crate) struct Wait {
    pub(crate) id: AttemptId,
    pub(crate) began: Duration,
    /// Of this and all earlier attempts, the last one that stopped waiting, with the time; `None` if one of
    /// them still waits.
    pub(crate) last: Option<(Duration, AttemptId)>,
}

/// The attempts of a run, each with its trace.
#[derive(Debug, Default)]
pub(crate) struct Attempts<'a> {
    traces: BTreeMap<AttemptId, AttemptTrace<'a>>,
    by_client_and_path: BTreeMap<(ClientId, &'a str), Vec<Wait>>,
    /// Groups of attempts that belong together. `group_of` contains the index of an attempt's group.
    groups: Vec<&'a [AttemptId]>,
    /// Paths at which attempts of a client share tickets.
    sharing: BTreeSet<&'a str>,
    group_of: BTreeMap<AttemptId, usize>,
    /// Contradictions in the record, each with its attempt and its index in the record. These include events
    /// of attempts that never began.
    pub(crate) contradictions: Vec<(AttemptId, usize, &'static str)>,
}

impl<'a> Attempts<'a> {
    pub(crate) fn of(events: &'a [Event], lives: &BTreeMap<ClientId, Timeline>) -> Self {
        let mut attempts = Self::default();
        for (index, event) in events.iter().enumerate() {
            attempts.note(index, event, lives);
        }
        attempts.find_last();
        attempts.find_sharing();
        attempts
    }

    /// Computes [`Wait::last`], once all events are known.
    fn find_last(&mut self) {
        for waits in self.by_client_and_path.values_mut() {
            let mut last = Some(None);
            for wait in waits {
                let ended = self.traces.get(&wait.id).and_then(AttemptTrace::waited_until);
                last = last.zip(ended).map(|(last, ended)| Some((ended, wait.id)).max(last));
                wait.last = last.flatten();
            }
        }
    }

    /// Finds the paths at which tickets were shared in turns.
    fn find_sharing(&mut self) {
        let has_turn =
            |trace: &&AttemptTrace<'_>| trace.granted.is_some_and(|(_, grant)| grant.turn.is_some());
        let turns = self.traces.values().filter(has_turn);
        self.sharing = turns.map(|trace| trace.attempt.path.as_str()).collect();
    }

    fn note(&mut self, index: usize, event: &'a Event, lives: &BTreeMap<ClientId, Timeline>) {
        let (at, kind) = (event.at, &event.kind);
        if let (EventKind::Began(attempt), Some(client)) = (kind, event.client) {
            let crashed = lives.get(&client).and_then(|life| life.crashed);
            self.begin(index, AttemptTrace::new(attempt, client, at, crashed));
            return;
        }
        if let EventKind::Together(attempts) = kind {
            self.group_of.extend(attempts.iter().map(|id| (*id, self.groups.len())));
            self.groups.push(attempts);
            return;
        }
        let Some(id) = attempt_of(kind) else { return };
        let Some(trace) = self.traces.get_mut(&id) else {
            self.contradictions.push((id, index, "the attempt never began"));
            return;
        };
        if let Some(wrong) = trace.contradicts(kind) {
            self.contradictions.push((id, index, wrong));
        }
        trace.take_down(index, at, kind);
    }

    fn begin(&mut self, index: usize, trace: AttemptTrace<'a>) {
        let (id, began, key) = (trace.id(), trace.began, (trace.client, trace.attempt.path.as_str()));
        if self.traces.insert(id, trace).is_some() {
            self.contradictions.push((id, index, "the attempt began twice"));
        }
        self.by_client_and_path.entry(key).or_default().push(Wait { id, began, last: None });
    }

    pub(crate) fn get(&self, id: AttemptId) -> Option<&AttemptTrace<'a>> {
        self.traces.get(&id)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &AttemptTrace<'a>> {
        self.traces.values()
    }

    /// The attempts of a client at a path, in the order in which they began.
    pub(crate) fn of_client_at<'b>(
        &'b self,
        client: ClientId,
        path: &'b str,
    ) -> impl Iterator<Item = &'b AttemptTrace<'a>> {
        self.waits(client, path).iter().filter_map(|wait| self.traces.get(&wait.id))
    }

    /// Like [`of_client_at`](Self::of_client_at), without the traces.
    pub(crate) fn waits<'b>(&'b self, client: ClientId, path: &'b str) -> &'b [Wait] {
        self.by_client_and_path.get(&(client, path)).map_or(&[], Vec::as_slice)
    }

    /// The attempts of a client at a path that began by `until`, without the leading ones that had all
    /// stopped waiting before `since`.
    pub(crate) fn waiting<'b>(
        &'b self,
        client: ClientId,
        path: &'b str,
        since: Duration,
        until: Duration,
    ) -> impl Iterator<Item = &'b AttemptTrace<'a>> {
        let waits = self.waits(client, path);
        let begun = &waits[..waits.partition_point(|wait| wait.began <= until)];
        let skipped = begun.partition_point(|wait| wait.last.is_some_and(|(ended, _)| ended < since));
        begun[skipped..].iter().filter_map(|wait| self.traces.get(&wait.id))
    }

    /// Returns true if the attempts of a client share tickets at this path. When one of them ends, the others
    /// keep its place in the line.
    pub(crate) fn are_sharing(&self, path: &str) -> bool {
        self.sharing.contains(path)
    }

    /// Groups of attempts that belong together.
    pub(crate) fn groups(&self) -> &[&'a [AttemptId]] {
        &self.groups
    }

    /// The group of an attempt, including the attempt itself; empty if the attempt is alone.
    pub(crate) fn together(&self, id: AttemptId) -> impl Iterator<Item = &AttemptTrace<'a>> {
        let group = self.group_of.get(&id).map_or(&[][..], |group| self.groups[*group]);
        group.iter().filter_map(|id| self.traces.get(id))
    }

    /// Returns true if the attempt belongs to a group.
    pub(crate) fn is_grouped(&self, id: AttemptId) -> bool {
        self.group_of.contains_key(&id)
    }

    /// Clients and paths with at least one attempt.
    pub(crate) fn clients_and_paths(&self) -> impl Iterator<Item = (ClientId, &'a str)> {
        self.by_client_and_path.keys().copied()
    }
}

/// The attempt that an event belongs to.
pub(crate) fn attempt_of(kind: &EventKind) -> Option<AttemptId> {
    match kind {
        EventKind::Began(attempt) => Some(attempt.id),
        EventKind::Granted(id, _)
        | EventKind::Ended(id, _)
        | EventKind::Reentered(id, _)
        | EventKind::Used(id, _)
        | EventKind::Lost(id)
        | EventKind::InnerReleased(id)
        | EventKind::Releasing(id)
        | EventKind::Dropped(id) => Some(*id),
        EventKind::HeldChecked { attempt, .. }
        | EventKind::Verified { attempt, .. }
        | EventKind::Committed { attempt, .. }
        | EventKind::Released { attempt, .. } => Some(*attempt),
        _ => None,
    }
}
