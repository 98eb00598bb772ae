//! Items of a queue, as they appear in the journal.

use crate::journal_replay::{ITEM, Moment, NodeLife};
use crate::run::{Decodable, Queued};
use std::time::Duration;

/// An item in one node.
#[derive(Debug)]
pub(crate) struct Item<'s> {
    pub(crate) queued: &'s Queued,
    pub(crate) decodable: Decodable,
    /// Whether the item's queue is in ordered mode.
    pub(crate) ordered: bool,
    pub(crate) place: Place,
    pub(crate) node: &'s NodeLife,
    /// True if the transaction that created the node deleted another node of the same item.
    pub(crate) is_moved_here: bool,
    /// The item's claims, in order; in ordered mode the tickets under which it was counted as handed out.
    pub(crate) claims: Vec<&'s NodeLife>,
    /// Nodes that were created below the item: the proofs of its claims, each of which counts as a hand-out.
    pub(crate) proofs: Vec<&'s NodeLife>,
    /// Moments at which the item's data was set; in ordered mode each with the transaction that created the
    /// ticket under which that happened.
    pub(crate) written: Vec<(Moment, Option<i64>)>,
}

/// Place of an item in its queue, as its node's name describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) priority: i32,
    /// Time before which the item may not be claimed, since the run began.
    pub(crate) due: Option<Duration>,
    /// True if a consumer gave the item back until that time. The place is then that of the number.
    pub(crate) returned: bool,
    pub(crate) number: i32,
}

impl Item<'_> {
    /// The transaction that deleted the item's node, and the claim that it deleted too.
    pub(crate) fn ended_with(&self) -> Option<(i64, Option<&NodeLife>)> {
        let zxid = self.node.deleted?.when.zxid;
        let with = |claim: &&&NodeLife| claim.deleted.is_some_and(|deleted| deleted.when.zxid == zxid);
        Some((zxid, self.claims.iter().find(with).copied()))
    }

    /// Returns true if a claim of the item counts as a hand-out, and the transaction that ended the claim did
    /// not undo the count.
    pub(crate) fn counts(&self, claim: &NodeLife) -> bool {
        let until = claim.deleted.map_or(i64::MAX, |deleted| deleted.when.zxid);
        let during = claim.created.zxid..=until;
        if self.ordered {
            // In ordered mode the item's data contains the count.
            return self.written_under(claim).count() == 1;
        }
        self.proofs_of(claim).any(|proof| during.contains(&proof.created.zxid))
            && !self.written.iter().any(|(write, _)| write.zxid == until)
    }

    /// The transaction since which a claim belongs to the item. In ordered mode the ticket itself is older.
    pub(crate) fn claimed(&self, claim: &NodeLife) -> i64 {
        let counted = self.counted(claim).filter(|_| self.ordered);
        counted.map_or(claim.created.zxid, |counted| counted.zxid)
    }

    fn written_under(&self, ticket: &NodeLife) -> impl Iterator<Item = Moment> {
        let is_under = move |under: &Option<i64>| *under == Some(ticket.created.zxid);
        self.written.iter().filter(move |(_, under)| is_under(under)).map(|(write, _)| *write)
    }

    /// Moment at which a claim of the item was counted as a hand-out.
    pub(crate) fn counted(&self, claim: &NodeLife) -> Option<Moment> {
        let during = claim.created.zxid..=claim.deleted.map_or(i64::MAX, |deleted| deleted.when.zxid);
        let proofs = self.proofs_of(claim).map(|proof| proof.created);
        let proofs = proofs.filter(|proof| during.contains(&proof.zxid));
        proofs.chain(self.written_under(claim)).min()
    }

    /// Nodes that the session of a claim created below the item since the claim.
    pub(crate) fn proofs_of(&self, claim: &NodeLife) -> impl Iterator<Item = &NodeLife> {
        let (owner, since) = (claim.owner, claim.created.zxid);
        let of_claim = move |proof: &&&NodeLife| proof.owner == owner && proof.created.zxid >= since;
        self.proofs.iter().filter(of_claim).copied()
    }

    /// Periods in which no client had claimed the item, starting at the time from which it may be claimed.
    pub(crate) fn free(&self) -> impl Iterator<Item = (Duration, Duration)> {
        let due = self.place.due.unwrap_or_default();
        let end = self.node.deleted.map_or(Duration::MAX, |deleted| deleted.when.at);
        let claim_end = |claim: &&NodeLife| claim.deleted.map_or(Duration::MAX, |deleted| deleted.when.at);
        let from = std::iter::once(self.node.created.at).chain(self.claims.iter().map(claim_end));
        let until = self.claims.iter().map(|claim| claim.created.at).chain([end]);
        from.map(move |from| from.max(due)).zip(until).filter(|(from, until)| from < until)
    }
}

impl Place {
    /// Parses the last component of a path; returns `None` if it is not the name of an item.
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

    /// The time that the item was put with, if any.
    fn put_until(&self) -> Option<Duration> {
        self.due.filter(|_| !self.returned)
    }

    /// Returns true if an item at this place precedes one at another place, if both may be claimed. Priority
    /// decides first. Within a priority the number decides, or the time if both items were put with one.
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
        // No order is guaranteed between an item with a time and one without.
        assert!(!place(0, Some(1), 1).goes_before(&place(0, None, 2)));
        assert!(!place(0, None, 1).goes_before(&place(0, Some(1), 2)));
    }
}
