//! Lines of readers and writers, replayed: for each place the ones it waited for, and the moment since when
//! it waited for none.

use crate::contender::Contender;
use crate::journal_replay::{JournalReplay, Moment};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Marker before the number of readers.
const READER: &str = "__READ__";
/// Marker before the number of writers.
const WRITER: &str = "__WRIT__";

/// The places of readers and writers, by their node. Lines whose numbers tell no order are not replayed.
#[derive(Debug, Default)]
pub(crate) struct RwLines {
    places: HashMap<usize, Place>,
}

/// History of a place in a line of readers and writers.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// Moment at which nobody was left that it had to wait for.
    pub(crate) admitted: Option<Moment>,
    /// The nearest ones that it had to wait for, one after the other.
    pub(crate) blockers: Vec<usize>,
    /// Others that it may have watched while it waited: for a writer those right before the nearest one, for
    /// a reader all writers ahead.
    pub(crate) others: BTreeSet<usize>,
    /// True when it is that of a writer that steps down: the writer's node was there when it was made.
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
            steps.extend(node.gone.map(|gone| (gone.when, false, contender.number, is_writer, *index)));
        }
        steps.sort_unstable();
        let mut alive: BTreeSet<(i32, bool, usize)> = BTreeSet::new();
        for transaction in steps.chunk_by(|one, other| one.0.zxid == other.0.zxid) {
            for (_, comes, number, is_writer, index) in transaction {
                let one = (*number, *is_writer, *index);
                if *comes {
                    alive.insert(one)
                } else {
                    alive.remove(&one)
                };
            }
            for one in &alive {
                self.look(&alive, *one, transaction[0].0);
            }
        }
    }

    /// Notes the nearest one that it has to wait for, if that has changed, and others. A reader never waits
    /// for the writer that it was: that has its number.
    fn look(&mut self, alive: &BTreeSet<(i32, bool, usize)>, one: (i32, bool, usize), now: Moment) {
        let (number, is_writer, index) = one;
        let place = self.places.entry(index).or_default();
        let ahead = alive.range(..(number, false, 0)).rev();
        let mut ahead =
            ahead.filter(|(_, other_writes, _)| is_writer || *other_writes).map(|(.., other)| *other);
        let nearest = ahead.next();
        if place.admitted.is_none() {
            place.others.extend(ahead.take(if is_writer { 1 } else { usize::MAX }));
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
    /// True for a reader and for a writer.
    pub(crate) fn is_reader_or_writer(&self) -> bool {
        [READER, WRITER].contains(&self.kind.as_str())
    }

    pub(crate) fn is_writer(&self) -> bool {
        self.kind == WRITER
    }
}
