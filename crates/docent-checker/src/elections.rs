use crate::event::{AttemptId, Candidacy, ClientId, Event, EventKind, Observing};
use crate::journal_replay::JournalReplay;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The elections of a run, with their candidates and observers.
#[derive(Debug, Default)]
pub(crate) struct Elections<'a> {
    campaigns: BTreeMap<AttemptId, Campaign>,
    candidates: BTreeMap<AttemptId, Candidate>,
    observers: BTreeMap<AttemptId, Observer<'a>>,
    /// The takeover delay of each election.
    delays: BTreeMap<&'a str, Duration>,
}

/// How an attempt takes part in an election.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Campaign {
    pub(crate) candidate: AttemptId,
    /// Time for which work may continue after the end of its lease, if work is bound to the term.
    pub(crate) bound: Option<Duration>,
    /// Takeover delay: the time that the candidate waits if its predecessor did not resign.
    pub(crate) delay: Duration,
}

/// A candidate, which may campaign many times.
#[derive(Debug, Default)]
pub(crate) struct Candidate {
    /// The candidate's attempts, in order.
    pub(crate) attempts: Vec<AttemptId>,
    pub(crate) stopping: Option<Duration>,
}

/// An observer of an election.
#[derive(Debug)]
pub(crate) struct Observer<'a> {
    pub(crate) client: ClientId,
    pub(crate) path: &'a str,
    pub(crate) steps: Vec<(Duration, &'a Observing)>,
}

impl<'a> Elections<'a> {
    pub(crate) fn of(events: &'a [Event]) -> Self {
        let mut elections = Self::default();
        let mut paths: BTreeMap<AttemptId, &str> = BTreeMap::new();
        for event in events {
            match (&event.kind, event.client) {
                (EventKind::Began(attempt), _) => {
                    paths.insert(attempt.id, &attempt.path);
                }
                (EventKind::Campaigned(candidate, Candidacy::Joins { attempt, bound, delay }), _) => {
                    let campaign = Campaign { candidate: *candidate, bound: *bound, delay: *delay };
                    elections.campaigns.insert(*attempt, campaign);
                    elections.candidates.entry(*candidate).or_default().attempts.push(*attempt);
                    let longest = paths.get(attempt).map(|path| elections.delays.entry(path).or_default());
                    longest.into_iter().for_each(|longest| *longest = (*longest).max(*delay));
                }
                (EventKind::Campaigned(candidate, Candidacy::Stopping), _) => {
                    elections.candidates.entry(*candidate).or_default().stopping.get_or_insert(event.at);
                }
                (EventKind::Observed(id, step), Some(client)) => {
                    elections.note_observer(*id, client, event.at, step);
                }
                _ => {}
            }
        }
        elections
    }

    fn note_observer(&mut self, id: AttemptId, client: ClientId, at: Duration, step: &'a Observing) {
        if let Observing::Reads(path) | Observing::Follows(path) = step {
            let observer = || Observer { client, path, steps: Vec::new() };
            self.observers.entry(id).or_insert_with(observer);
        }
        if let Some(observer) = self.observers.get_mut(&id) {
            observer.steps.push((at, step));
        }
    }

    /// How an attempt takes part in an election; `None` if the attempt does not belong to a candidate.
    pub(crate) fn campaign(&self, attempt: AttemptId) -> Option<&Campaign> {
        self.campaigns.get(&attempt)
    }

    /// The candidates, by their number.
    pub(crate) fn candidates(&self) -> &BTreeMap<AttemptId, Candidate> {
        &self.candidates
    }

    pub(crate) fn observers(&self) -> impl Iterator<Item = &Observer<'a>> {
        self.observers.values()
    }

    /// The path of each election, with the longest takeover delay of its candidates.
    pub(crate) fn delays(&self) -> &BTreeMap<&'a str, Duration> {
        &self.delays
    }

    /// Longest time that a candidate at a path may wait after it became first; zero if the path has no
    /// election.
    pub(crate) fn delay(&self, path: &str) -> Duration {
        self.delays.get(path).copied().unwrap_or_default()
    }

    /// The clients that observe the election at a path.
    pub(crate) fn observers_of(&self, path: &str) -> BTreeSet<ClientId> {
        self.observers().filter(|observer| observer.path == path).map(|observer| observer.client).collect()
    }
}

/// The successive first contenders of an election's line, each with the time at which it became first and its
/// fence; `None` while the line was empty.
#[derive(Debug)]
pub(crate) struct Firsts(Vec<(Duration, Option<u64>)>);

impl Firsts {
    /// Replays the line at a path; returns `None` if numbers give no order.
    pub(crate) fn of(replay: &JournalReplay, path: &str) -> Option<Self> {
        let mut steps: Vec<(i64, Duration, bool, (i32, i64))> = Vec::new();
        for (_, node) in replay.contenders_in(path) {
            let contender = node.contender.as_ref().filter(|contender| !contender.is_in_danger_zone())?;
            let (created, place) = (node.created, (contender.number, node.created.zxid));
            steps.push((created.zxid, created.at, true, place));
            steps.extend(node.deleted.map(|deleted| (deleted.when.zxid, deleted.when.at, false, place)));
        }
        steps.sort_unstable();
        let mut firsts = vec![(Duration::ZERO, None)];
        let mut line = BTreeSet::new();
        for transaction in steps.chunk_by(|one, other| one.0 == other.0) {
            for (.., joins, place) in transaction {
                if *joins {
                    line.insert(*place)
                } else {
                    line.remove(place)
                };
            }
            let first = line.first().map(|(_, czxid)| czxid.unsigned_abs());
            if firsts.last().is_none_or(|(_, last)| *last != first) {
                firsts.push((transaction[0].1, first));
            }
        }
        Some(Self(firsts))
    }

    /// The contenders that were first at some time between two times, each with the times at which it became
    /// first and ceased to be first.
    pub(crate) fn between(
        &self,
        from: Duration,
        until: Duration,
    ) -> impl Iterator<Item = (Duration, Duration, Option<u64>)> {
        let ends = self.0[1..].iter().map(|(at, _)| *at).chain([Duration::MAX]);
        let all = self.0.iter().zip(ends).map(|((at, first), end)| (*at, end, *first));
        all.skip_while(move |(_, end, _)| *end < from).take_while(move |(at, ..)| *at <= until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{HistoryBuilder, LOCK};

    #[test]
    fn each_first_candidate_lasts_until_the_next_one() {
        let mut history = HistoryBuilder::new();
        let (first, second) = (history.at(100).begin(0), history.begin(1));
        history.create(first).at(150).create(second).at(200).delete(first).at(300).delete(second);
        let replay = JournalReplay::of(&history.run.journal);
        let firsts = Firsts::of(&replay, LOCK).unwrap();
        let all = |from, until| {
            let between = firsts.between(Duration::from_millis(from), Duration::from_millis(until));
            between.map(|(.., first)| first).collect::<Vec<_>>()
        };
        let (one, other) = (Some(history.fence(first)), Some(history.fence(second)));
        assert_eq!(all(0, 1_000), [None, one, other, None]);
        assert_eq!(all(120, 180), [one]);
        assert_eq!(all(120, 200), [one, other]);
        assert_eq!(all(400, 500), [None]);
    }
}
