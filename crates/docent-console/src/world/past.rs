use super::owner::owner_of;
use docent::inspect::{Queue, Recipe, Report};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Maximum number of elections, and of queues, whose past is kept.
const MAX_PATHS: usize = 1_000;

/// Maximum number of terms that are kept for an election.
const MAX_TERMS: usize = 50;

/// Interval between samples of a queue.
pub(super) const SAMPLE: Duration = Duration::from_secs(5);

/// Number of samples that are kept for a queue: ten minutes.
const MAX_SAMPLES: usize = 120;

/// The past that no node shows: earlier leaders, and the depth of queues. It begins when the console begins.
#[derive(Debug, Default)]
pub(super) struct Past {
    terms: HashMap<Arc<str>, VecDeque<Term>>,
    samples: HashMap<Arc<str>, VecDeque<Sample>>,
    /// Number of times that an election had another leader than before.
    pub(super) leader_changes: u64,
}

/// Time during which one client led.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Term {
    /// Name of the leader's node.
    node: String,
    pub(crate) leader: String,
    pub(crate) from: SystemTime,
    /// `None` while it leads.
    pub(crate) until: Option<SystemTime>,
}

/// State of a queue at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    pub(crate) depth: usize,
    /// Age of the item at the head in seconds; 0 for an empty queue.
    pub(crate) head_seconds: f64,
}

impl Past {
    /// Records who leads.
    pub(super) fn report(&mut self, path: &Arc<str>, report: &Report, now: SystemTime) {
        let Recipe::Election(election) = &report.recipe else { return };
        let is_new = !self.terms.contains_key(path);
        if is_new && self.terms.len() >= MAX_PATHS && !self.forget_one() {
            return;
        }
        let terms = self.terms.entry(Arc::clone(path)).or_default();
        let leader = election.leader.as_ref();
        if terms.back().filter(|term| term.until.is_none()).map(|term| &*term.node)
            == leader.map(|one| &*one.name)
        {
            return;
        }
        if let Some(last) = terms.back_mut().filter(|term| term.until.is_none()) {
            last.until = Some(now);
        }
        let Some(leader) = report.stakes().into_iter().find(|stake| stake.role.is_owner()) else { return };
        let from = if is_new { leader.since.map_or(now, |since| since.at) } else { now };
        terms.push_back(Term {
            node: leader.name.to_owned(),
            leader: owner_of(&leader, true),
            from,
            until: None,
        });
        if terms.len() > MAX_TERMS {
            terms.pop_front();
        }
        if !is_new {
            self.leader_changes += 1;
        }
    }

    /// Forgets the election that has been without a leader for the longest time. Returns false if all have
    /// one.
    fn forget_one(&mut self) -> bool {
        let never = Some(SystemTime::UNIX_EPOCH);
        let ended = self
            .terms
            .iter()
            .filter_map(|(path, terms)| Some((terms.back().map_or(never, |last| last.until)?, path)));
        let Some(path) = ended.min().map(|(_, path)| Arc::clone(path)) else { return false };
        self.terms.remove(&path).is_some()
    }

    /// Ends the current term of a deleted election.
    pub(super) fn gone(&mut self, path: &str, now: SystemTime) {
        if let Some(last) = self.terms.get_mut(path).and_then(VecDeque::back_mut) {
            last.until.get_or_insert(now);
        }
        self.samples.remove(path);
    }

    /// Records the state of all queues.
    pub(super) fn sample<'a>(
        &mut self,
        queues: impl Iterator<Item = (&'a Arc<str>, &'a Queue)>,
        now: SystemTime,
    ) {
        for (path, queue) in queues {
            if !self.samples.contains_key(path) && self.samples.len() >= MAX_PATHS {
                continue;
            }
            let since = queue.head.as_ref().and_then(|head| head.since);
            let age = since.and_then(|since| now.duration_since(since.at).ok()).unwrap_or_default();
            let samples = self.samples.entry(Arc::clone(path)).or_default();
            samples.push_back(Sample { depth: queue.depth, head_seconds: age.as_secs_f64() });
            if samples.len() > MAX_SAMPLES {
                samples.pop_front();
            }
        }
    }

    /// Returns the terms of an election, the latest first.
    pub(super) fn terms(&self, path: &str) -> Vec<Term> {
        self.terms.get(path).map(|terms| terms.iter().rev().cloned().collect()).unwrap_or_default()
    }

    /// Returns the samples of a queue, the earliest first.
    pub(super) fn samples(&self, path: &str) -> Vec<Sample> {
        self.samples.get(path).map(|samples| samples.iter().copied().collect()).unwrap_or_default()
    }

    /// Returns the number of leaders that an election has had since this time, and its path, for each one
    /// with more than `most`.
    pub(super) fn flapping(
        &self,
        since: SystemTime,
        most: usize,
    ) -> impl Iterator<Item = (&Arc<str>, usize)> {
        self.terms.iter().filter_map(move |(path, terms)| {
            // The first term may have begun before the console.
            let count = terms.iter().skip(1).filter(|term| term.from >= since).count();
            (count > most).then_some((path, count))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elections_without_a_leader_are_forgotten_first() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let mut past = Past::default();
        for (path, until) in [("/leads", None), ("/ended", Some(at(20))), ("/first", Some(at(10)))] {
            let term = Term { node: "n".to_owned(), leader: "a".to_owned(), from: at(0), until };
            past.terms.insert(Arc::from(path), VecDeque::from([term]));
        }
        assert!(past.forget_one() && past.terms("/first").is_empty());
        assert!(past.forget_one() && past.terms("/ended").is_empty());
        assert!(!past.forget_one() && past.terms("/leads").len() == 1);
    }
}
