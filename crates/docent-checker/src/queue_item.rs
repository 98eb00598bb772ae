//! Items of a queue, as the journal shows them.

use crate::journal_replay::{ITEM, Moment, NodeLife};
use crate::run::{Decodable, Queued};
use std::time::Duration;

/// An item in one node.
#[derive(Debug)]
pub(crate) struct Item<'s> {
    pub(crate) queued: &'s Queued,
    pub(crate) decodable: Decodable,
    /// Whether it is in a queue in ordered mode.
    pub(crate) ordered: bool,
    pub(crate) place: Place,
    pub(crate) node: &'s NodeLife,
    /// True for a node that another one of the same item made way for, in one step.
    pub(crate) is_moved_here: bool,
    /// Its claims in their order; in ordered mode the tickets under which it was counted as handed out.
    pub(crate) claims: Vec<&'s NodeLife>,
    /// Nodes that were made below it: the proofs of its claims, each of which counts a hand-out.
    pub(crate) proofs: Vec<&'s NodeLife>,
    /// Moments at which its data was set; in ordered mode with the transaction that made the ticket under
    /// which that was done.
    pub(crate) written: Vec<(Moment, Option<i64>)>,
}

/// Place of an item in its queue, as its name says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) priority: i32,
    /// Time from which on it may be claimed, since the run began.
    pub(crate) due: Option<Duration>,
    /// True when it was given back until that time: then its place is that of its number.
    pub(crate) returned: bool,
    pub(crate) number: i32,
}

impl Item<'_> {
    /// The claim that was deleted together with it, and the transaction.
    pub(crate) fn ended_with(&self) -> Option<(i64, Option<&NodeLife>)> {
        let zxid = self.node.gone?.when.zxid;
        let with = |claim: &&&NodeLife| claim.gone.is_some_and(|gone| gone.when.zxid == zxid);
        Some((zxid, self.claims.iter().find(with).copied()))
    }

    /// True when one of its claims is counted as a hand-out, and the count was not taken back in the step
    /// that ended it.
    pub(crate) fn counts(&self, claim: &NodeLife) -> bool {
        let until = claim.gone.map_or(i64::MAX, |gone| gone.when.zxid);
        let during = claim.created.zxid..=until;
        if self.ordered {
            // Counted and taken back in its data.
            return self.written_under(claim).count() == 1;
        }
        self.proofs_of(claim).any(|proof| during.contains(&proof.created.zxid))
            && !self.written.iter().any(|(write, _)| write.zxid == until)
    }

    /// The transaction from which on a claim was one of this item: in ordered mode the ticket was made
    /// earlier.
    pub(crate) fn claimed(&self, claim: &NodeLife) -> i64 {
        let counted = self.counted(claim).filter(|_| self.ordered);
        counted.map_or(claim.created.zxid, |counted| counted.zxid)
    }

    fn written_under(&self, ticket: &NodeLife) -> impl Iterator<Item = Moment> {
        let is_under = move |under: &Option<i64>| *under == Some(ticket.created.zxid);
        self.written.iter().filter(move |(_, under)| is_under(under)).map(|(write, _)| *write)
    }

    /// Moment at which a claim of it was counted as a hand-out.
    pub(crate) fn counted(&self, claim: &NodeLife) -> Option<Moment> {
        let during = claim.created.zxid..=claim.gone.map_or(i64::MAX, |gone| gone.when.zxid);
        let proofs = self.proofs_of(claim).map(|proof| proof.created);
        let proofs = proofs.filter(|proof| during.contains(&proof.zxid));
        proofs.chain(self.written_under(claim)).min()
    }

    /// Nodes that the session of a claim made below the item since the claim.
    pub(crate) fn proofs_of(&self, claim: &NodeLife) -> impl Iterator<Item = &NodeLife> {
        let (owner, since) = (claim.owner, claim.created.zxid);
        let of_claim = move |proof: &&&NodeLife| proof.owner == owner && proof.created.zxid >= since;
        self.proofs.iter().filter(of_claim).copied()
    }

    /// Times at which nobody had it, each with its end, from its time on.
    pub(crate) fn free(&self) -> impl Iterator<Item = (Duration, Duration)> {
        let due = self.place.due.unwrap_or_default();
        let end = self.node.gone.map_or(Duration::MAX, |gone| gone.when.at);
        let over = |claim: &&NodeLife| claim.gone.map_or(Duration::MAX, |gone| gone.when.at);
        let from = std::iter::once(self.node.created.at).chain(self.claims.iter().map(over));
        let until = self.claims.iter().map(|claim| claim.created.at).chain([end]);
        from.map(move |from| from.max(due)).zip(until).filter(|(from, until)| from < until)
    }
}

impl Place {
    /// Reads the last component of a path; `None` for what is no item's.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let mut rest = path.rsplit('/').next()?.strip_prefix(ITEM)?;
        let (mut priority, mut due, mut returned) = (0, None, false);
        if let Some((digits, behind)) = rest.strip_prefix('p').and_then(|rest| rest.split_once('-')) {
            priority = (u32::from_str_radix(digits, 16).ok()? ^ (1 << 31)).cast_signed();
            rest = behind;
        }
        if let Some((digits, behind)) = rest.strip_prefix('t').and_then(|rest| rest.split_once('-')) {
            due = Some(Duration::from_millis(u64::from_str_radix(digits, 16).ok()?));
            rest = behind;
        }
        if let Some((digits, behind)) = rest.strip_prefix('r').and_then(|rest| rest.split_once('-')) {
            due = Some(Duration::from_millis(u64::from_str_radix(digits, 16).ok()?));
            (returned, rest) = (true, behind);
        }
        Some(Self { priority, due, returned, number: rest.parse().ok()? })
    }

    /// Time that it was put with.
    fn put_until(&self) -> Option<Duration> {
        self.due.filter(|_| !self.returned)
    }

    /// True when an item at this place goes before one at another, where both may be claimed: by priority,
    /// and within one by number, or if both were put with a time, by that.
    pub(crate) fn goes_before(&self, other: &Self) -> bool {
        match self.priority == other.priority {
            true if self.put_until().is_some() == other.put_until().is_some() => {
                (self.put_until(), self.number) < (other.put_until(), other.number)
            }
            true => false,
            false => self.priority < other.priority,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_from_a_name() {
        let of = |name: &str| {
            Place::of(&format!("/q/items/{name}")).map(|place| (place.priority, place.due, place.number))
        };
        assert_eq!(of("item-0000000042"), Some((0, None, 42)));
        assert_eq!(of("item-p80000005-0000000042"), Some((5, None, 42)));
        let ten = Some(Duration::from_millis(10));
        assert_eq!(of("item-p7fffffff-t000000000000000a-0000000042"), Some((-1, ten, 42)));
        assert_eq!(of("item-t000000000000000a-0000000042"), Some((0, ten, 42)));
        assert_eq!((of("count"), of("item-x")), (None, None));
    }

    #[test]
    fn priority_decides_and_then_the_time_or_the_number() {
        let place = |priority, due: Option<u64>, number| Place {
            priority,
            due: due.map(Duration::from_millis),
            returned: false,
            number,
        };
        assert!(place(-1, Some(9), 2).goes_before(&place(0, None, 1)));
        assert!(place(0, None, 1).goes_before(&place(0, None, 2)));
        assert!(place(0, Some(1), 2).goes_before(&place(0, Some(2), 1)));
        // Between an item with a time and one without nothing is promised.
        assert!(!place(0, Some(1), 1).goes_before(&place(0, None, 2)));
        assert!(!place(0, None, 1).goes_before(&place(0, Some(1), 2)));
    }
}
