use crate::error::Error;
use crate::guard::Role;
use std::borrow::Cow;
use uuid::Uuid;

/// First number of the danger zone, the last part of the server's 32-bit counter. The counter may stick
/// there, or wrap and repeat.
const DANGER_FROM: i32 = i32::MAX - (1 << 20);

/// First number that causes a warning: half of the numbers are used up.
const WARN_FROM: i32 = 1 << 30;

/// Returns the protected name of a node to be created: `_c_<uuid>-<marker>`, to which the server appends a
/// number. The `id` identifies the node if the reply to its create is lost. The format is Curator's.
pub(super) fn protected(id: Uuid, marker: &str) -> String {
    format!("_c_{id}-{marker}")
}

/// Number of digits that the servers append.
const DIGITS: usize = 10;

/// Parses the number at the end of a contender's name: ten digits, or a minus sign and ten digits, right
/// after the last `marker`, which does not end with a digit. Returns `None` for other names.
pub(super) fn sequence(name: &str, marker: &str) -> Option<i32> {
    // Parse from the end. Each listing has many names, and searching for the marker would cost several times
    // as much.
    let (text, digits) = name.as_bytes().split_last_chunk::<DIGITS>()?;
    let number = digits.iter().try_fold(0, |number: i64, digit| {
        digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0'))
    })?;
    let marker = marker.as_bytes();
    if text.ends_with(marker) {
        return i32::try_from(number).ok();
    }
    text.strip_suffix(b"-")?.ends_with(marker).then(|| i32::try_from(-number).ok())?
}

/// Returns true if ordering by number is no longer reliable.
pub(super) fn is_in_danger_zone(sequence: i32) -> bool {
    !(0..=DANGER_FROM).contains(&sequence)
}

/// Returns true if an operator should act before the numbers run out.
pub(super) fn is_running_out(sequence: i32) -> bool {
    sequence >= WARN_FROM
}

/// Kinds of nodes that count as contenders, by the marker before the number in their names.
#[derive(Debug, Clone)]
pub(super) struct Contenders(Vec<(Cow<'static, str>, Role)>);

impl Contenders {
    pub(super) fn of(markers: impl IntoIterator<Item = (&'static str, Role)>) -> Self {
        Self(markers.into_iter().map(|(marker, role)| (marker.into(), role)).collect())
    }

    /// Adds a kind of nodes.
    ///
    /// # Errors
    /// `InvalidInput` if the marker cannot distinguish nodes.
    pub(super) fn with(mut self, marker: String, role: Role) -> Result<Self, Error> {
        let rule = if marker.is_empty() {
            "must not be empty"
        } else if marker.contains('/') {
            "must not contain '/'"
        } else if marker.ends_with(|last: char| last.is_ascii_digit()) {
            "must not end with a digit, because a number follows"
        } else if self.0.iter().any(|(known, _)| *known == marker) {
            "must be given once, and differ from the lock's own marker"
        } else {
            self.0.push((marker.into(), role));
            return Ok(self);
        };
        Err(Error::invalid_input("neighbours", format!("marker {marker:?} {rule}")))
    }

    /// Returns the number and role of a contender; `None` if the name belongs to no contender.
    pub(super) fn find(&self, name: &str) -> Option<(i32, Role)> {
        self.0.iter().find_map(|(marker, role)| Some((sequence(name, marker)?, *role)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Ids;

    #[test]
    fn a_protected_name_is_curators() {
        let name = protected(Ids::default().fresh(0x1000_0000_0000_0001), "lock-");
        let uuid = name.strip_prefix("_c_").unwrap().strip_suffix("-lock-").unwrap();
        assert_eq!(Uuid::parse_str(uuid).unwrap().get_version_num(), 4);
        assert_eq!(uuid.len(), 36);
    }

    #[test]
    fn contenders_of_curator_and_go_are_understood() {
        for name in [
            "_c_9a794062-0b31-421c-9cfe-0699f14437da-lock-0000000031",
            "_c_8eb6557ec51a32d1e0cb91e4d5e9a5c5-lock-0000000031",
            "lock-0000000031",
        ] {
            assert_eq!(sequence(name, "lock-"), Some(31), "{name}");
        }
        assert_eq!(sequence("lock--2147483648", "lock-"), Some(i32::MIN));
    }

    #[test]
    fn other_names_are_no_contenders() {
        for name in [
            "foo",
            "lock",
            "lock-",
            "lock-abc",
            "lock-12345678901",
            "lock-000000001",
            "-0000000001",
            "lock-+000000001",
            "lock-9999999999",
            "lock-000000000a",
            "",
        ] {
            assert_eq!(sequence(name, "lock-"), None, "{name}");
        }
    }

    #[test]
    fn the_last_marker_in_a_name_precedes_the_number() {
        let after_last = |name: &str, marker: &str| {
            let (_, number) = name.rsplit_once(marker)?;
            let digits = number.strip_prefix('-').unwrap_or(number);
            let is_number = digits.len() == 10 && digits.bytes().all(|byte| byte.is_ascii_digit());
            if is_number { number.parse::<i32>().ok() } else { None }
        };
        for marker in ["lock-", "-", "--", "a-", "__WRIT__", "n-1-"] {
            for before in ["", "-", "--", "a", "lock-", "lock", "n-1-1", "n-1-n-1-", "__WRIT__", "ä"] {
                for number in ["", "-", "1", "2147483648", "-2147483649", "0000000031", "-0000000031"] {
                    for middle in ["", marker] {
                        let name = format!("{before}{middle}{number}");
                        assert_eq!(sequence(&name, marker), after_last(&name, marker), "{name} {marker}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_danger_zone_is_the_end_of_the_counter_and_what_comes_after() {
        assert!(!is_in_danger_zone(0));
        assert!(!is_in_danger_zone(DANGER_FROM));
        assert!(is_in_danger_zone(DANGER_FROM + 1));
        assert!(is_in_danger_zone(i32::MAX));
        assert!(is_in_danger_zone(-1));
        assert!(is_running_out(1 << 30));
    }

    #[test]
    fn kazoo_contenders_count_in_lines_that_include_them() {
        let name = "8eb6557ec51a32d1e0cb91e4d5e9a5c5__lock__0000000031";
        let own = Contenders::of([("lock-", Role::Exclusive)]);
        assert_eq!(own.find(name), None);
        let both = own.with("__lock__".to_owned(), Role::Exclusive).unwrap();
        assert_eq!(both.find(name), Some((31, Role::Exclusive)));
        assert_eq!(both.find("_c_8eb6-lock-0000000007"), Some((7, Role::Exclusive)));
        assert_eq!(both.find("8eb6__rlock__0000000007"), None);
    }

    #[test]
    fn a_marker_that_breaks_a_rule_is_refused() {
        let contenders = Contenders::of([("lock-", Role::Exclusive)]);
        for (marker, rule) in
            [("", "empty"), ("a/b", "'/'"), ("n-1", "end with a digit"), ("lock-", "given once")]
        {
            let error = contenders.clone().with(marker.to_owned(), Role::Shared).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(rule) && text.contains(&format!("{marker:?}")), "{text}");
        }
    }
}
