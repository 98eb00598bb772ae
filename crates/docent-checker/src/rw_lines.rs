//! Replays the lines of readers and writers: which contenders each place waited for, and when it no longer
//! had to wait.

use crate::contender::Contender;
use crate::journal_replay::{JournalReplay, Moment};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Marker before the number in the names of readers.
const READER: &str = "__READ__";
/// Marker before the number in the names of writers.
const WRITER: &str = "__WRIT__";

/// The places of readers and writers, by the index of their node. Lines whose numbers give no order are not
/// replayed.
#[derive(Debug, Default)]
pub(crate) struct RwLines {
    places: HashMap<usize, Place>,
}

/// History of a place in a line of readers and writers.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// Moment since which the place did not have to wait for any other.
    pub(crate) admitted: Option<Moment>,
    /// The nearest nodes that the place had to wait for, one after the other.
    pub(crate) blockers: Vec<usize>,
    /// Other nodes that the place may have watched while it waited: for a writer those just ahead of the
    /// nearest one, for a reader all writers ahead.
    pub(crate) also_watched: BTreeSet<usize>,
    /// True if the place belongs to a writer that downgrades: the writer's node existed when this node was
    /// created.
    pub(crate) taken_over: bool,
}

impl RwLines {
    pub(crate) fn of(replay: &JournalReplay) -> Self {
        let mut lines: BTreeMap<&str, Vec<(usize, &Contender)>> = BTreeMap::new();
        for (index, node) in replay.contenders() {
            if let Some(contender) =
                node.contender.as_ref().filter(|contender| contender.is_reader_or_writer())
            {
                lines.entry(node.folder()).or_default().push((index, contender));
            }
        }
        let mut rw_lines = Self::default();
        for line in lines.into_values() {
            if !line.iter().any(|(_, contender)| contender.is_in_danger_zone()) {
                rw_lines.replay_line(replay, &line);
            }
        }
        rw_lines
    }

    pub(crate) fn place(&self, node: usize) -> Option<&Place> {
        self.places.get(&node)
    }

    fn replay_line(&mut self, replay: &JournalReplay, line: &[(usize, &Contender)]) {
        let mut steps: Vec<(Moment, bool, i32, bool, usize)> = Vec::new();
        for (index, contender) in line {
            let (node, is_writer) = (&replay.nodes()[*index], contender.is_writer());
            steps.push((node.created, true, contender.number, is_writer, *index));
            steps.extend(
                node.deleted.map(|deleted| (deleted.when, false, contender.number, is_writer, *index)),
            );
        }
        steps.sort_unstable();
        let mut alive: BTreeSet<(i32, bool, usize)> = BTreeSet::new();
        for transaction in steps.chunk_by(|one, other| one.0.zxid == other.0.zxid) {
            for (_, joins, number, is_writer, index) in transaction {
                let one = (*number, *is_writer, *index);
                if *joins {
                    alive.insert(one)
                } else {
                    alive.remove(&one)
                };
            }
            for one in &alive {
                self.note_blockers(&alive, *one, transaction[0].0);
            }
        }
    }

    /// Notes the nearest node that a place has to wait for, if that has changed, and other nodes that it may
    /// watch. A reader never waits for the writer that it was, because both have the same number.
    fn note_blockers(&mut self, alive: &BTreeSet<(i32, bool, usize)>, one: (i32, bool, usize), now: Moment) {
        let (number, is_writer, index) = one;
        let place = self.places.entry(index).or_default();
        let ahead = alive.range(..(number, false, 0)).rev();
        let mut ahead =
            ahead.filter(|(_, other_writes, _)| is_writer || *other_writes).map(|(.., other)| *other);
        let nearest = ahead.next();
        if place.admitted.is_none() {
            place.also_watched.extend(ahead.take(if is_writer { 1 } else { usize::MAX }));
        }
        let waits = place.blockers.last().is_some_and(|last| alive.iter().any(|(.., other)| other == last));
        if place.admitted.is_some() || waits {
            return;
        }
        place.taken_over |=
            !is_writer && alive.range((number, true, 0)..=(number, true, usize::MAX)).next().is_some();
        match nearest {
            Some(blocker) => place.blockers.push(blocker),
            None => place.admitted = Some(now),
        }
    }
}

impl Contender {
    /// Returns true for readers and writers.
    pub(crate) fn is_reader_or_writer(&self) -> bool {
        [READER, WRITER].contains(&self.kind.as_str())
    }

    pub(crate) fn is_writer(&self) -> bool {
        self.kind == WRITER
    }
}
