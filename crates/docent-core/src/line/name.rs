use crate::error::Error;
use crate::guard::Role;
use std::borrow::Cow;
use uuid::Uuid;

/// First number of the last part of the server's 32-bit counter, where it may stick or wrap and repeat.
const DANGER_FROM: i32 = i32::MAX - (1 << 20);

/// First number with a warning: half of the numbers are used up.
const WARN_FROM: i32 = 1 << 30;

/// The protected name of a node to be created: `_c_<uuid>-<marker>`, to which the server appends a number.
/// The `id` tells our node from all others when the reply to its creation is lost. The format is Curator's.
pub(super) fn protected(id: Uuid, marker: &str) -> String {
    format!("_c_{id}-{marker}")
}

/// Digits of a number that the servers append.
const DIGITS: usize = 10;

/// The number at the end of a contender's name: ten digits, or a minus and ten digits, right after the last
/// `marker`, which does not end with a digit. `None` for names of others.
pub(super) fn sequence(name: &str, marker: &str) -> Option<i32> {
    // From the end: each listing of a line has many names, and a search for the marker costs several times
    // that.
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

/// True when order by number cannot be relied on any more.
pub(super) fn is_in_danger_zone(sequence: i32) -> bool {
    !(0..=DANGER_FROM).contains(&sequence)
}

/// True when a person should act before the numbers run out.
pub(super) fn is_running_out(sequence: i32) -> bool {
    sequence >= WARN_FROM
}

/// Kinds of nodes that count in a line, by the marker before the number in their names.
#[derive(Debug, Clone)]
pub(super) struct Contenders(Vec<(Cow<'static, str>, Role)>);

impl Contenders {
    pub(super) fn of(markers: impl IntoIterator<Item = (&'static str, Role)>) -> Self {
        Self(markers.into_iter().map(|(marker, role)| (marker.into(), role)).collect())
    }

    /// Adds a kind of nodes.
    ///
    /// # Errors
    /// `InvalidInput` when the marker cannot tell nodes apart.
    pub(super) fn with(mut self, marker: String, role: Role) -> Result<Self, Error> {
        let rule = if marker.is_empty() {
            "must not be empty"
        } else if marker.contains('/') {
            "must not contain '/'"
        } else if marker.ends_with(|last: char| last.is_ascii_digit()) {
            "must not end with a digit: numbers follow"
        } else if self.0.iter().any(|(known, _)| *known == marker) {
            "must be given once, and not be the lock's own"
        } else {
            self.0.push((marker.into(), role));
            return Ok(self);
        };
        Err(Error::invalid_input("neighbours", format!("marker {marker:?} {rule}")))
    }

    /// The number and role of a contender; `None` for names of others.
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
    fn other_names_are_nobody() {
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
    fn the_last_marker_is_the_one_before_the_number() {
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
    fn kazoos_contenders_count_where_they_were_asked_for() {
        let name = "8eb6557ec51a32d1e0cb91e4d5e9a5c5__lock__0000000031";
        let ours = Contenders::of([("lock-", Role::Exclusive)]);
        assert_eq!(ours.find(name), None);
        let both = ours.with("__lock__".to_owned(), Role::Exclusive).unwrap();
        assert_eq!(both.find(name), Some((31, Role::Exclusive)));
        assert_eq!(both.find("_c_8eb6-lock-0000000007"), Some((7, Role::Exclusive)));
        assert_eq!(both.find("8eb6__rlock__0000000007"), None);
    }

    #[test]
    fn a_marker_that_tells_nothing_is_refused() {
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
