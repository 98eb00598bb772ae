/// A contender, parsed from the name of a node in a line: `_c_<uuid>-lock-0000000007`,
/// `_c_<uuid>-__READ__0000000007`, `lock-0000000007`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contender {
    /// Kind of the contender, as the recipe writes it before the number.
    pub(crate) kind: String,
    /// Sequence number that the server appended.
    pub(crate) number: i32,
}

/// First number of the range in which the server's counter may stop or wrap, so that numbers repeat.
const DANGER_FROM: i32 = i32::MAX - (1 << 20);
const DIGITS: usize = 10;
/// Lengths of an id: a UUID with or without dashes.
const IDS: [usize; 2] = [36, 32];

impl Contender {
    /// Parses the last component of a path; returns `None` if the name is not that of a contender.
    pub(crate) fn of(name: &str) -> Option<Self> {
        if is_id(name) {
            return None;
        }
        let (front, digits) = name.split_at_checked(name.len().checked_sub(DIGITS)?)?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        // A minus belongs to the number only if the marker is complete without it.
        let negative = front.ends_with("--") || front.ends_with("_-");
        let marker = if negative { front.get(..front.len() - 1)? } else { front };
        let number: i64 = digits.parse().ok()?;
        let number = i32::try_from(if negative { -number } else { number }).ok()?;
        let kind = without_id(marker);
        (!kind.is_empty()).then(|| Self { kind: kind.to_owned(), number })
    }

    /// Contenders of one family wait in one line. Readers and writers are one family.
    pub(crate) fn family(&self) -> &str {
        match self.kind.as_str() {
            "__READ__" | "__WRIT__" => "read/write",
            kind => kind,
        }
    }

    /// Returns true if the server's counter is so near its end that numbers no longer give an order.
    pub(crate) fn is_in_danger_zone(&self) -> bool {
        !(0..=DANGER_FROM).contains(&self.number)
    }
}

/// Returns true for a bare id. It is the name of a member of a group, even if it ends with digits.
pub(crate) fn is_id(name: &str) -> bool {
    IDS.contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// The part of a name after the id that distinguishes nodes. The id may be Curator's, Go's (`_c_` without
/// dashes) or kazoo's (without `_c_`).
fn without_id(marker: &str) -> &str {
    let rest = marker.strip_prefix("_c_").unwrap_or(marker);
    let behind = |length: usize| {
        let (id, kind) = rest.split_at_checked(length)?;
        is_id(id).then(|| kind.strip_prefix('-').unwrap_or(kind))
    };
    IDS.into_iter().find_map(behind).unwrap_or(marker)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str) -> Option<(String, i32)> {
        Contender::of(name).map(|contender| (contender.kind, contender.number))
    }

    #[test]
    fn names_of_contenders_are_understood() {
        let id = "9a794062-0b31-421c-9cfe-0699f14437da";
        let some = |kind: &str, number| Some((kind.to_owned(), number));
        assert_eq!(read(&format!("_c_{id}-lock-0000000031")), some("lock-", 31));
        assert_eq!(read(&format!("_c_{id}-__WRIT__0000000031")), some("__WRIT__", 31));
        assert_eq!(read("_c_8eb6557ec51a32d1e0cb91e4d5e9a5c5-lock-0000000031"), some("lock-", 31));
        assert_eq!(read("8eb6557ec51a32d1e0cb91e4d5e9a5c5__lock__0000000031"), some("__lock__", 31));
        assert_eq!(read("lock-0000000031"), some("lock-", 31));
        assert_eq!(read("lock--2147483648"), some("lock-", i32::MIN));
        assert_eq!(read("__READ__-2147483648"), some("__READ__", i32::MIN));
    }

    #[test]
    fn other_names_are_no_contenders() {
        let id = "9a794062-0b31-421c-9cfe-060012345678";
        for name in ["", "foo", "lock-", "lock-000000001", "0000000001", "lock-9999999999", id] {
            assert_eq!(read(name), None, "{name}");
        }
    }

    #[test]
    fn the_end_of_the_counter_is_dangerous() {
        assert!(!Contender { kind: String::new(), number: 7 }.is_in_danger_zone());
        assert!(Contender { kind: String::new(), number: i32::MAX }.is_in_danger_zone());
        assert!(Contender { kind: String::new(), number: -1 }.is_in_danger_zone());
    }
}
