use super::name::{Contenders, is_in_danger_zone};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::Role;

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
}
