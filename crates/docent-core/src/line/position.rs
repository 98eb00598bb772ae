use super::name::{Contenders, is_in_danger_zone};
use crate::hold::Role;

/// Position of a ticket in its line, as of one listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Position {
    /// No listing was seen yet.
    Unlisted,
    /// The ticket's node does not exist.
    Missing,
    /// No contender is ahead.
    First,
    /// A contender is ahead.
    Behind {
        /// Name of the nearest contender ahead.
        predecessor: String,
        further: Further,
    },
    /// A number is so near the end of the counter that numbers give no reliable order. Contains the
    /// contenders.
    Unordered(Vec<String>),
}

/// Contenders that a ticket has to wait for besides its predecessor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Further {
    /// None, and there never will be any: new contenders join behind.
    None,
    /// These, in line order. No new contender can join among them.
    Few(Vec<String>),
    /// The contender of this name, which is before the predecessor, and perhaps more. When it leaves, the
    /// line has to be listed to find the remaining ones.
    Before(String),
    /// Perhaps some: only a listing shows them, once the predecessor has left.
    Unknown,
    /// As `Unknown`, but numbers give no reliable order: with no contender ahead, a check is still necessary.
    Unordered,
}

impl Further {
    /// Returns the contender to wait for first, unless that is the predecessor. As long as this contender is
    /// in the line, the predecessor's turn has not come.
    pub(super) fn nearest(&self) -> Option<&String> {
        match self {
            Self::Few(ahead) => ahead.last(),
            Self::Before(name) => Some(name),
            Self::None | Self::Unknown | Self::Unordered => None,
        }
    }

    /// Returns true if only the predecessor is ahead, as far as the numbers show.
    pub(super) fn is_next(&self) -> bool {
        matches!(self, Self::None | Self::Unknown)
    }
}

impl Position {
    /// Finds `own` among `names`. Names that belong to no contender are ignored.
    pub(super) fn find(own: &str, names: &[String], contenders: &Contenders) -> Self {
        let Some((own_sequence, _)) = contenders.find(own) else { return Self::Missing };
        let contenders = names.iter().filter_map(|name| Some((contenders.find(name)?.0, name)));
        if contenders.clone().any(|(sequence, _)| is_in_danger_zone(sequence)) {
            return Self::Unordered(contenders.map(|(_, name)| name.clone()).collect());
        }
        let mut present = planted!(GrantWithoutOwnNode);
        // The two nearest contenders ahead.
        let mut predecessor: Option<(i32, &String)> = None;
        let mut before: Option<(i32, &String)> = None;
        for (sequence, name) in contenders {
            present |= name == own;
            if sequence < own_sequence {
                let is_nearer = |nearest| match planted!(AllWatchTheFirst) {
                    true => sequence < nearest,
                    false => sequence > nearest,
                };
                if predecessor.is_none_or(|(nearest, _)| is_nearer(nearest)) {
                    before = predecessor.replace((sequence, name));
                } else if before.is_none_or(|(nearest, _)| sequence > nearest) {
                    before = Some((sequence, name));
                }
            }
        }
        match predecessor {
            _ if !present => Self::Missing,
            None => Self::First,
            Some((_, name)) => {
                let further = match before {
                    _ if planted!(AllWatchTheFirst) => Further::Unknown,
                    Some((_, name)) => Further::Before(name.clone()),
                    None => Further::None,
                };
                Self::Behind { predecessor: name.clone(), further }
            }
        }
    }
}

impl Position {
    /// Finds `own` by the transactions that created the contenders, which always give the order. Does not
    /// return the other contenders ahead, so the ticket lists the line again before it takes its turn.
    pub(super) fn find_by_creation(own: &str, created: &[(i64, String)]) -> Self {
        let Some((own_czxid, _)) = created.iter().find(|(_, name)| name == own) else { return Self::Missing };
        let ahead = created.iter().filter(|(czxid, _)| czxid < own_czxid);
        match ahead.max_by_key(|(czxid, _)| *czxid) {
            None => Self::First,
            Some((_, name)) => Self::Behind { predecessor: name.clone(), further: Further::Unordered },
        }
    }
}

/// Maximum number of writers ahead that a reader remembers. When the nearest one leaves, the reader asks
/// about these instead of listing the whole line.
const FEW: usize = 64;

/// The two kinds of contenders in a line of readers and writers, and the kind of one ticket.
///
/// A writer waits for all contenders ahead, a reader only for writers. If a writer and a reader have the same
/// number, the writer is ahead: a reader has a writer's number only if it was that writer and downgraded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sides<'a> {
    pub(super) contenders: &'a Contenders,
    pub(super) own: Role,
}

impl Sides<'_> {
    fn contender(&self, name: &str) -> Option<(i32, Role)> {
        self.contenders.find(name)
    }

    /// Returns true if a ticket waits for contenders of this role that are ahead.
    pub(super) fn waits_for(&self, role: Role) -> bool {
        if planted!(ReaderWaitsForReaders) {
            return true;
        }
        self.own == Role::Exclusive || role == Role::Exclusive && !planted!(ReaderIgnoresWriter)
    }

    /// Finds `own` among `names`.
    ///
    /// After a writer leaves, a writer lists the line, because the former writer may have downgraded to a
    /// reader in its place. Behind a single reader, a writer need not list the line.
    ///
    /// A reader need not list it either: it waits only for writers, and the number of writers ahead can only
    /// decrease. New writers join behind the reader, a downgrading writer becomes a reader, and no reader
    /// becomes a writer.
    pub(super) fn find(&self, own: &str, names: &[String]) -> Position {
        let Some(own_place) = self.contender(own) else { return Position::Missing };
        let contenders = names.iter().filter_map(|name| Some((self.contender(name)?, name)));
        if contenders.clone().any(|((number, _), _)| is_in_danger_zone(number)) {
            return Position::Unordered(contenders.map(|(_, name)| name.clone()).collect());
        }
        if !names.iter().any(|name| name == own) {
            return Position::Missing;
        }
        let ahead = contenders.filter(|(place, _)| self.waits_for(place.1) && *place < own_place);
        let mut ahead: Vec<_> = ahead.collect();
        ahead.sort_unstable();
        let nearest = ahead.pop();
        let further = match (self.own, nearest) {
            (Role::Exclusive, Some(((_, role), _))) => before(role, &ahead),
            _ => few(&ahead),
        };
        behind(nearest.map(|(_, name)| name), further)
    }

    /// Finds `own` if some numbers give no reliable order. Transactions give the order, except for downgraded
    /// writers, whose reader nodes are younger than their place. Two contenders with reliable numbers are
    /// therefore still ordered by number.
    pub(super) fn find_by_creation(&self, own: &str, created: &[(i64, String)]) -> Position {
        let (Some(own_place), Some((own_czxid, _))) =
            (self.contender(own), created.iter().find(|(_, name)| name == own))
        else {
            return Position::Missing;
        };
        let is_ahead = |(czxid, name): &&(i64, String)| {
            let Some(place) = self.contender(name).filter(|place| self.waits_for(place.1)) else {
                return false;
            };
            if is_in_danger_zone(place.0) || is_in_danger_zone(own_place.0) {
                czxid < own_czxid
            } else {
                place < own_place
            }
        };
        let nearest = created.iter().filter(is_ahead).max_by_key(|(czxid, _)| *czxid);
        behind(nearest.map(|(_, name)| name), Further::Unordered)
    }
}

fn few(ahead: &[((i32, Role), &String)]) -> Further {
    match ahead.len() {
        0 => Further::None,
        1..=FEW => Further::Few(ahead.iter().map(|(_, name)| (*name).clone()).collect()),
        _ => before(Role::Exclusive, ahead),
    }
}

/// Returns the contenders `ahead` of a writer, whose predecessor has this role.
fn before(predecessor: Role, ahead: &[((i32, Role), &String)]) -> Further {
    match ahead.last() {
        Some((_, name)) => Further::Before((*name).clone()),
        None if predecessor == Role::Shared => Further::None,
        None => Further::Unknown,
    }
}

fn behind(predecessor: Option<&String>, further: Further) -> Position {
    match predecessor {
        None => Position::First,
        Some(name) => Position::Behind { predecessor: name.clone(), further },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hold::Role;
    use std::sync::LazyLock;

    fn position(own: &str, names: &[&str]) -> Position {
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        Position::find(own, &names, &Contenders::of([("lock-", Role::Exclusive)]))
    }

    fn behind(predecessor: &str, before: Option<&str>) -> Position {
        let further = before.map_or(Further::None, |name| Further::Before(name.to_owned()));
        Position::Behind { predecessor: predecessor.to_owned(), further }
    }

    #[test]
    fn a_ticket_waits_for_the_nearest_one_ahead() {
        let names = ["z-lock-0000000001", "b-lock-0000000007", "a-lock-0000000005", "m-lock-0000000009"];
        assert_eq!(position("z-lock-0000000001", &names), Position::First);
        assert_eq!(position("a-lock-0000000005", &names), behind("z-lock-0000000001", None));
        let third = behind("b-lock-0000000007", Some("a-lock-0000000005"));
        assert_eq!(position("m-lock-0000000009", &names), third);
        let other_order =
            ["a-lock-0000000005", "z-lock-0000000001", "b-lock-0000000007", "m-lock-0000000009"];
        assert_eq!(position("m-lock-0000000009", &other_order), third);
    }

    #[test]
    fn a_ticket_that_is_not_listed_is_missing_even_without_contenders_ahead() {
        assert_eq!(position("a-lock-0000000005", &[]), Position::Missing);
        assert_eq!(position("a-lock-0000000005", &["b-lock-0000000004"]), Position::Missing);
    }

    #[test]
    fn foreign_children_are_ignored() {
        assert_eq!(
            position("b-lock-0000000005", &["a", "lock-", "x-read-0000000001", "b-lock-0000000005"]),
            Position::First
        );
    }

    #[test]
    fn numbers_near_the_end_of_the_counter_give_no_order() {
        let names = ["a-lock-0000000005", "b-lock--2147483648"];
        let unordered = Position::Unordered(names.map(str::to_owned).to_vec());
        assert_eq!(position("a-lock-0000000005", &names), unordered);
        let end = position("a-lock-0000000005", &["a-lock-0000000005", "b-lock-2147483647", "foreign"]);
        assert!(matches!(end, Position::Unordered(contenders) if contenders.len() == 2));
    }

    fn unordered(predecessor: &str) -> Position {
        Position::Behind { predecessor: predecessor.to_owned(), further: Further::Unordered }
    }

    #[test]
    fn near_the_end_of_the_counter_the_order_is_that_of_creation() {
        let created = [(7, "b-lock--2147483648"), (5, "a-lock-2147483647"), (9, "c-lock-2147483647")]
            .map(|(czxid, name)| (czxid, name.to_owned()));
        assert_eq!(Position::find_by_creation("a-lock-2147483647", &created), Position::First);
        assert_eq!(
            Position::find_by_creation("b-lock--2147483648", &created),
            unordered("a-lock-2147483647")
        );
        assert_eq!(
            Position::find_by_creation("c-lock-2147483647", &created),
            unordered("b-lock--2147483648")
        );
        assert_eq!(Position::find_by_creation("d-lock-0000000001", &created), Position::Missing);
        // If `Unordered` counted as next, every such ticket would keep its lease fresh, although its turn
        // needs a check anyway.
        assert!(!Further::Unordered.is_next());
        assert!(Further::Unknown.is_next());
    }

    static BOTH: LazyLock<Contenders> =
        LazyLock::new(|| Contenders::of([("__WRIT__", Role::Exclusive), ("__READ__", Role::Shared)]));
    static WRITERS: LazyLock<Sides<'_>> = LazyLock::new(|| Sides { contenders: &BOTH, own: Role::Exclusive });
    static READERS: LazyLock<Sides<'_>> = LazyLock::new(|| Sides { contenders: &BOTH, own: Role::Shared });

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    /// Place if numbers give no reliable order.
    fn created_after(predecessor: &str) -> Position {
        super::behind(Some(&predecessor.to_owned()), Further::Unordered)
    }

    /// Place of a writer behind a single writer.
    fn waits_behind(predecessor: &str) -> Position {
        super::behind(Some(&predecessor.to_owned()), Further::Unknown)
    }

    /// Place of a writer with one contender ahead of its predecessor, and perhaps more.
    fn writes_behind(predecessor: &str, before: &str) -> Position {
        super::behind(Some(&predecessor.to_owned()), Further::Before(before.to_owned()))
    }

    /// Place of a reader, with the other writers ahead.
    fn reads_behind(predecessor: &str, ahead: &[&str]) -> Position {
        let further = if ahead.is_empty() { Further::None } else { Further::Few(names(ahead)) };
        super::behind(Some(&predecessor.to_owned()), further)
    }

    #[test]
    fn a_reader_waits_for_the_nearest_writer_ahead_and_a_writer_for_its_predecessor() {
        let line = names(&[
            "e-__WRIT__0000000009",
            "a-__WRIT__0000000001",
            "d-__READ__0000000007",
            "c-__READ__0000000005",
            "b-__WRIT__0000000003",
        ]);
        assert_eq!(WRITERS.find("a-__WRIT__0000000001", &line), Position::First);
        assert_eq!(WRITERS.find("b-__WRIT__0000000003", &line), waits_behind("a-__WRIT__0000000001"));
        for reader in ["c-__READ__0000000005", "d-__READ__0000000007"] {
            let place = reads_behind("b-__WRIT__0000000003", &["a-__WRIT__0000000001"]);
            assert_eq!(READERS.find(reader, &line), place);
        }
        let last = writes_behind("d-__READ__0000000007", "c-__READ__0000000005");
        assert_eq!(WRITERS.find("e-__WRIT__0000000009", &line), last);
    }

    #[test]
    fn readers_without_a_writer_ahead_share_the_turn() {
        let line = names(&["a-__READ__0000000001", "b-__READ__0000000002", "c-__WRIT__0000000003"]);
        assert_eq!(READERS.find("a-__READ__0000000001", &line), Position::First);
        assert_eq!(READERS.find("b-__READ__0000000002", &line), Position::First);
    }

    #[test]
    fn a_writer_that_stepped_down_is_still_ahead_of_those_behind_it() {
        let both = names(&["w-__WRIT__0000000001", "r-__READ__0000000001", "n-__WRIT__0000000002"]);
        assert_eq!(WRITERS.find("w-__WRIT__0000000001", &both), Position::First);
        assert_eq!(READERS.find("r-__READ__0000000001", &both), reads_behind("w-__WRIT__0000000001", &[]));
        let second = writes_behind("r-__READ__0000000001", "w-__WRIT__0000000001");
        assert_eq!(WRITERS.find("n-__WRIT__0000000002", &both), second);
        let down = names(&["r-__READ__0000000001", "n-__WRIT__0000000002", "m-__READ__0000000003"]);
        // Only writers downgrade: behind a single reader, no further place can be taken.
        let alone = super::behind(Some(&"r-__READ__0000000001".to_owned()), Further::None);
        assert_eq!(WRITERS.find("n-__WRIT__0000000002", &down), alone);
        assert_eq!(READERS.find("m-__READ__0000000003", &down), reads_behind("n-__WRIT__0000000002", &[]));
    }

    #[test]
    fn near_the_end_of_the_counter_a_writer_that_stepped_down_keeps_its_place() {
        let line =
            names(&["r-__READ__0000000001", "n-__WRIT__0000000002", "x-__WRIT__-2147483648", "foreign"]);
        let Position::Unordered(contenders) = WRITERS.find("n-__WRIT__0000000002", &line) else {
            panic!("expected that the numbers give no order");
        };
        assert_eq!(contenders.len(), 3);
        // The reader has the youngest node, and the oldest place.
        let created: Vec<_> = [9, 5, 7].into_iter().zip(contenders).collect();
        assert_eq!(
            WRITERS.find_by_creation("n-__WRIT__0000000002", &created),
            created_after("r-__READ__0000000001")
        );
        assert_eq!(
            WRITERS.find_by_creation("x-__WRIT__-2147483648", &created),
            created_after("n-__WRIT__0000000002")
        );
        // The reader is behind no contender with a reliable number. It already holds, so it never lists the
        // line.
        assert_ne!(
            READERS.find_by_creation("r-__READ__0000000001", &created),
            created_after("n-__WRIT__0000000002")
        );
        assert_eq!(READERS.find_by_creation("gone-__READ__0000000001", &created), Position::Missing);
    }

    #[test]
    fn a_reader_remembers_the_writers_ahead_up_to_a_limit() {
        let mut line: Vec<_> = (0..=FEW).map(|number| format!("w-__WRIT__{number:010}")).collect();
        line.push("r-__READ__0000009999".to_owned());
        let Position::Behind { predecessor, further: Further::Few(ahead) } =
            READERS.find("r-__READ__0000009999", &line)
        else {
            panic!("expected the reader to remember the writers")
        };
        assert_eq!((predecessor.as_str(), &ahead[..]), (line[FEW].as_str(), &line[..FEW]));
        line.push("v-__WRIT__0000009998".to_owned());
        let last = writes_behind("v-__WRIT__0000009998", &line[FEW]);
        assert_eq!(READERS.find("r-__READ__0000009999", &line), last);
    }

    #[test]
    fn a_ticket_that_is_not_listed_is_missing() {
        assert_eq!(
            READERS.find("a-__READ__0000000005", &names(&["b-__READ__0000000004"])),
            Position::Missing
        );
        assert_eq!(READERS.find("foreign", &[]), Position::Missing);
    }
}
