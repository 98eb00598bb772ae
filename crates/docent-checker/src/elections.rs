use crate::event::{AttemptId, Candidacy, ClientId, Event, EventKind, Onlooking};
use crate::journal_replay::JournalReplay;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The elections of a run, with their candidates and onlookers.
#[derive(Debug, Default)]
pub(crate) struct Elections<'a> {
    standings: BTreeMap<AttemptId, Standing>,
    candidates: BTreeMap<AttemptId, Candidate>,
    onlookers: BTreeMap<AttemptId, Onlooker<'a>>,
    /// The takeover delay of each election.
    delays: BTreeMap<&'a str, Duration>,
}

/// Standing of an attempt in an election.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing {
    pub(crate) candidate: AttemptId,
    /// Time that its work may go on after the end of its lease, if work is bound to its terms.
    pub(crate) bound: Option<Duration>,
    /// Time that it waits when its predecessor did not resign.
    pub(crate) delay: Duration,
}

/// Candidate that stands again and again.
#[derive(Debug, Default)]
pub(crate) struct Candidate {
    /// Its attempts in their order.
    pub(crate) attempts: Vec<AttemptId>,
    pub(crate) stopping: Option<Duration>,
}

/// Onlooker at an election.
#[derive(Debug)]
pub(crate) struct Onlooker<'a> {
    pub(crate) client: ClientId,
    pub(crate) path: &'a str,
    pub(crate) steps: Vec<(Duration, &'a Onlooking)>,
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
                (EventKind::Stood(candidate, Candidacy::Stands { attempt, bound, delay }), _) => {
                    let standing = Standing { candidate: *candidate, bound: *bound, delay: *delay };
                    elections.standings.insert(*attempt, standing);
                    elections.candidates.entry(*candidate).or_default().attempts.push(*attempt);
                    let longest = paths.get(attempt).map(|path| elections.delays.entry(path).or_default());
                    longest.into_iter().for_each(|longest| *longest = (*longest).max(*delay));
                }
                (EventKind::Stood(candidate, Candidacy::Stopping), _) => {
                    elections.candidates.entry(*candidate).or_default().stopping.get_or_insert(event.at);
                }
                (EventKind::LookedOn(id, step), Some(client)) => {
                    elections.look_on(*id, client, event.at, step);
                }
                _ => {}
            }
        }
        elections
    }

    fn look_on(&mut self, id: AttemptId, client: ClientId, at: Duration, step: &'a Onlooking) {
        if let Onlooking::Asks(path) | Onlooking::Waits(path) = step {
            let onlooker = || Onlooker { client, path, steps: Vec::new() };
            self.onlookers.entry(id).or_insert_with(onlooker);
        }
        if let Some(onlooker) = self.onlookers.get_mut(&id) {
            onlooker.steps.push((at, step));
        }
    }

    /// The standing of an attempt; `None` for one that is no candidate's.
    pub(crate) fn standing(&self, attempt: AttemptId) -> Option<&Standing> {
        self.standings.get(&attempt)
    }

    /// The candidates, each with its number.
    pub(crate) fn candidates(&self) -> &BTreeMap<AttemptId, Candidate> {
        &self.candidates
    }

    pub(crate) fn onlookers(&self) -> impl Iterator<Item = &Onlooker<'a>> {
        self.onlookers.values()
    }

    /// The paths of elections with the longest takeover delay that a candidate has there.
    pub(crate) fn delays(&self) -> &BTreeMap<&'a str, Duration> {
        &self.delays
    }

    /// Time that a candidate at a path may wait after it came first; zero where there is no election.
    pub(crate) fn delay(&self, path: &str) -> Duration {
        self.delays.get(path).copied().unwrap_or_default()
    }

    /// The clients with an onlooker at a path.
    pub(crate) fn looking_on(&self, path: &str) -> BTreeSet<ClientId> {
        self.onlookers().filter(|onlooker| onlooker.path == path).map(|onlooker| onlooker.client).collect()
    }
}

/// Firsts of an election's line, each by its fence and with the time from which on it was first; `None` while
/// nobody stood.
#[derive(Debug)]
pub(crate) struct Firsts(Vec<(Duration, Option<u64>)>);

impl Firsts {
    /// `None` where numbers tell no order.
    pub(crate) fn of(replay: &JournalReplay, path: &str) -> Option<Self> {
        let mut steps: Vec<(i64, Duration, bool, (i32, i64))> = Vec::new();
        for (_, node) in replay.contenders_in(path) {
            let contender = node.contender.as_ref().filter(|contender| !contender.is_in_danger_zone())?;
            let (created, place) = (node.created, (contender.number, node.created.zxid));
            steps.push((created.zxid, created.at, true, place));
            steps.extend(node.gone.map(|gone| (gone.when.zxid, gone.when.at, false, place)));
        }
        steps.sort_unstable();
        let mut firsts = vec![(Duration::ZERO, None)];
        let mut line = BTreeSet::new();
        for transaction in steps.chunk_by(|one, other| one.0 == other.0) {
            for (.., comes, place) in transaction {
                if *comes {
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

    /// The contenders that were first at some time between two, with the times at which they came and went.
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
    fn each_first_is_there_until_the_next_one_is() {
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
