use crate::contender::Contender;
use std::collections::BTreeSet;

/// A line of contenders, in order, while a journal is replayed.
///
/// The order is that of the numbers. Equal numbers, which a downgrade creates by putting a reader into its
/// writer's place, are ordered by kind and creation. While any number is near the end of the server's
/// counter, only the creation decides. The recipes, and not this type, decide which contenders may hold
/// besides the first.
#[derive(Debug, Default)]
pub(crate) struct Line {
    by_number: BTreeSet<(i32, String, i64, usize)>,
    by_creation: BTreeSet<(i64, usize)>,
    endangered: usize,
    turn: Option<usize>,
}

impl Line {
    pub(crate) fn join(&mut self, node: usize, contender: &Contender, czxid: i64) {
        self.by_number.insert((contender.number, contender.kind.clone(), czxid, node));
        self.by_creation.insert((czxid, node));
        self.endangered += usize::from(contender.is_in_danger_zone());
    }

    pub(crate) fn leave(&mut self, node: usize, contender: &Contender, czxid: i64) {
        self.by_number.remove(&(contender.number, contender.kind.clone(), czxid, node));
        self.by_creation.remove(&(czxid, node));
        self.endangered -= usize::from(contender.is_in_danger_zone());
    }

    fn first(&self) -> Option<usize> {
        if self.endangered > 0 {
            return self.by_creation.first().map(|(_, node)| *node);
        }
        self.by_number.first().map(|(.., node)| *node)
    }

    /// Returns the first contender if the last transaction changed it.
    pub(crate) fn turn(&mut self) -> Option<usize> {
        let first = self.first();
        if self.turn == first {
            return None;
        }
        self.turn = first;
        first
    }
}
