use crate::contender::Contender;
use std::collections::BTreeSet;

/// Line of the contenders for one thing, in their order, while a journal is replayed.
///
/// The order is that of numbers; equal numbers (a downgrade puts a reader into its writer's place) go by kind
/// and creation. While any number is near the end of the server's counter the order is that of creation
/// alone. The recipe decides which contenders may hold beside the first, not this.
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

    /// The contender whose turn came by the last transaction.
    pub(crate) fn turn(&mut self) -> Option<usize> {
        let first = self.first();
        if self.turn == first {
            return None;
        }
        self.turn = first;
        first
    }
}
