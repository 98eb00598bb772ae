use super::name::{is_in_danger_zone, sequence};

/// Where a ticket stands in its line, as one listing shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// No listing was seen yet.
    Unlisted,
    /// The ticket's node is not there.
    Gone,
    /// Nobody is ahead.
    First,
    /// Somebody is.
    Behind {
        /// Name of the nearest contender ahead.
        blocker: String,
        /// True when that is the only one.
        next: bool,
    },
    /// Some number is so near the end of the counter that numbers tell no order.
    Unordered,
}

impl Place {
    /// Finds `own` among `names`. Names that are no contender's are ignored.
    pub(super) fn find(own: &str, names: &[String], marker: &str) -> Self {
        let Some(own_sequence) = sequence(own, marker) else { return Self::Gone };
        let mut present = false;
        let mut ahead = 0;
        let mut blocker: Option<(i32, &String)> = None;
        for name in names {
            let Some(sequence) = sequence(name, marker) else { continue };
            if is_in_danger_zone(sequence) {
                return Self::Unordered;
            }
            present |= name == own;
            if sequence < own_sequence {
                ahead += 1;
                if blocker.is_none_or(|(nearest, _)| sequence > nearest) {
                    blocker = Some((sequence, name));
                }
            }
        }
        match blocker {
            _ if !present => Self::Gone,
            None => Self::First,
            Some((_, name)) => Self::Behind { blocker: name.clone(), next: ahead == 1 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(own: &str, names: &[&str]) -> Place {
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        Place::find(own, &names, "lock-")
    }

    fn behind(blocker: &str, next: bool) -> Place {
        Place::Behind { blocker: blocker.to_owned(), next }
    }

    #[test]
    fn a_ticket_waits_for_the_nearest_one_ahead() {
        let names = ["z-lock-0000000001", "b-lock-0000000007", "a-lock-0000000005", "m-lock-0000000009"];
        assert_eq!(place("z-lock-0000000001", &names), Place::First);
        assert_eq!(place("a-lock-0000000005", &names), behind("z-lock-0000000001", true));
        assert_eq!(place("m-lock-0000000009", &names), behind("b-lock-0000000007", false));
    }

    #[test]
    fn a_ticket_that_is_not_listed_is_gone_even_with_nobody_ahead() {
        assert_eq!(place("a-lock-0000000005", &[]), Place::Gone);
        assert_eq!(place("a-lock-0000000005", &["b-lock-0000000004"]), Place::Gone);
    }

    #[test]
    fn foreign_children_are_nobody() {
        assert_eq!(
            place("b-lock-0000000005", &["a", "lock-", "x-read-0000000001", "b-lock-0000000005"]),
            Place::First
        );
    }

    #[test]
    fn numbers_near_the_end_of_the_counter_tell_no_order() {
        let names = ["a-lock-0000000005", "b-lock--2147483648"];
        assert_eq!(place("a-lock-0000000005", &names), Place::Unordered);
        assert_eq!(place("a-lock-0000000005", &["a-lock-0000000005", "b-lock-2147483647"]), Place::Unordered);
    }
}
