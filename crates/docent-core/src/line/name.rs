//! Names of tickets, and the kinds of lines that may share a path: recipes and layouts whose contenders do
//! not wait for each other.

use super::Line;
use crate::error::{Error, ErrorKind};
use crate::hold::Role;
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

/// Kinds of lines, each with the marker before the number in its node names.
const MARKERS: &[(&str, &str)] = &[
    ("lock-", "mutex or leader selector"),
    ("latch-", "leader latch"),
    ("__WRIT__", "read/write lock"),
    ("__READ__", "read/write lock"),
    ("lease-", "semaphore permit"),
    ("__lock__", "kazoo lock"),
    ("__rlock__", "kazoo read lock"),
];

/// Folder for the turns of a semaphore. The servers remove it while no contender waits for a turn.
const TURNS: &str = "locks";

/// Folder for the permits of a semaphore. It exists as long as a permit is taken.
const LEASES: &str = "leases";

/// Returns the name of the kind of lines with `marker`.
fn named(marker: &str) -> &str {
    MARKERS.iter().find(|(known, _)| *known == marker).map_or(marker, |(_, kind)| kind)
}

/// Name of a contender of a known kind: `<marker><number>`, preceded by an id as Curator, go-zookeeper or
/// kazoo write it. Other names with such an ending belong to no contender (`release-0000000001`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContenderName<'a> {
    /// Text before the marker: empty, `_c_<uuid>-`, `_c_<32 digits>-` or `<32 digits>`.
    pub id: &'a str,
    /// Text before the number, such as `lock-`, `latch-`, `lease-`, `__WRIT__` or `__rlock__`.
    pub marker: &'static str,
    /// Number that the servers appended.
    pub number: i32,
}

impl<'a> ContenderName<'a> {
    /// Parses the name of a node. Returns `None` if the name is not that of a known contender.
    pub fn parse(name: &'a str) -> Option<Self> {
        MARKERS.iter().find_map(|(marker, _)| {
            let number = sequence(name, marker)?;
            let (id, _) = name.rsplit_once(marker)?;
            is_id(id).then_some(Self { id, marker, number })
        })
    }

    /// Returns true if ordering by number is unreliable, because the servers' counter is near its end or
    /// beyond it.
    pub fn is_unordered(&self) -> bool {
        is_in_danger_zone(self.number)
    }
}

/// Returns the kind and number of a known contender.
fn known(name: &str) -> Option<(&'static str, i32)> {
    ContenderName::parse(name).map(|contender| (named(contender.marker), contender.number))
}

/// Returns true if `text` may precede the marker: empty, `_c_<uuid>-`, `_c_<32 digits>-` or `<32 digits>`.
fn is_id(text: &str) -> bool {
    let protected = text.strip_prefix("_c_").and_then(|id| id.strip_suffix('-'));
    let id = protected.unwrap_or(text);
    let lengths: &[usize] = if protected.is_some() { &[32, 36] } else { &[0, 32] };
    lengths.contains(&id.len()) && id.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// Builds the error of a contender of the kind `own_kind` at `path`, if `found` shows that `other_kind` uses
/// the path.
fn mixed(operation: &'static str, path: &str, own_kind: &str, other_kind: &str, found: &str) -> Error {
    let detail = format!(
        "used as a {own_kind}, but {found:?} belongs to a {other_kind}: the two do not wait for each other"
    );
    Error::new(ErrorKind::MixedKinds, operation).at(path).because(detail)
}

/// Refuses a recipe of the kind `own_kind` at `path` if `names` contains a known contender. It is for recipes
/// whose contenders are not direct children of `path`.
///
/// # Errors
/// `MixedKinds`, which names both kinds.
pub fn refuse_contenders(path: &str, own_kind: &str, names: &[String]) -> Result<(), Error> {
    let contender = names.iter().find_map(|name| Some((name, known(name)?.0)));
    contender.map_or(Ok(()), |(name, other_kind)| Err(mixed("acquire", path, own_kind, other_kind, name)))
}

/// Returns true if the contender with number `other` came before the one with `own`, or may have.
fn is_before(other: i32, own: Option<i32>) -> bool {
    // All kinds share the servers' counter, so the later of two nodes has the higher number.
    own.is_none_or(|own| other < own || is_in_danger_zone(other) || is_in_danger_zone(own))
}

impl Line {
    /// Refuses the ticket `own` if a contender of another kind came before it. Without `own`, it refuses a
    /// ticket that is about to be taken.
    ///
    /// If two kinds use one path, at least the later contender sees the other, because each takes its ticket
    /// before it lists.
    ///
    /// Contenders that came later are ignored. A later contender of this library is refused itself, and a
    /// line that is already in use continues to work.
    ///
    /// # Errors
    /// `MixedKinds`, which names both kinds.
    pub(super) fn refuse_other_kinds(&self, own: Option<&str>, names: &[String]) -> Result<(), Error> {
        let number = own.and_then(|own| self.contender(own)).map(|(number, _)| number);
        let other = names.iter().filter(|name| self.contender(name).is_none()).find_map(|name| {
            let (other_kind, other_number) = known(name)?;
            is_before(other_number, number).then_some((name, other_kind))
        });
        other.map_or(Ok(()), |(name, other_kind)| Err(self.mixed(other_kind, name)))
    }

    /// Same as [`refuse_other_kinds`](Self::refuse_other_kinds), for a ticket that was just taken or is about
    /// to be taken. Also refuses the node of a semaphore.
    pub(super) async fn refuse_all_other_kinds(
        &self,
        own: Option<&str>,
        names: &[String],
    ) -> Result<(), Error> {
        let has = |folder: &str| names.iter().any(|name| name == folder);
        // One of the two folders alone may belong to another program.
        if has(LEASES) && (has(TURNS) || Box::pin(self.has_permits()).await?) {
            return Err(self.mixed("semaphore", LEASES));
        }
        self.refuse_other_kinds(own, names)
    }

    /// Returns true if the folder for a semaphore's permits contains a permit.
    async fn has_permits(&self) -> Result<bool, Error> {
        match self.client().children(&format!("{}/{LEASES}", self.path())).await {
            Ok(children) => Ok(children.names.iter().any(|name| known(name).is_some())),
            Err(error) if matches!(error.kind(), ErrorKind::NoNode | ErrorKind::NoAuth) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn mixed(&self, other_kind: &str, found: &str) -> Error {
        mixed(self.operation(), self.path(), named(self.marker()), other_kind, found)
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

    #[test]
    fn contenders_of_all_kinds_are_known() {
        for (name, kind, number) in [
            ("_c_9a794062-0b31-421c-9cfe-0699f14437da-lock-0000000031", "mutex", 31),
            ("_c_8eb6557ec51a32d1e0cb91e4d5e9a5c5-lock-0000000031", "mutex", 31),
            ("lock-0000000007", "mutex", 7),
            ("_c_9a794062-0b31-421c-9cfe-0699f14437da-latch-0000000000", "leader latch", 0),
            ("_c_9a794062-0b31-421c-9cfe-0699f14437da-__READ__0000000002", "read/write lock", 2),
            ("_c_9a794062-0b31-421c-9cfe-0699f14437da-__WRIT__-2147483648", "read/write lock", i32::MIN),
            ("_c_9a794062-0b31-421c-9cfe-0699f14437da-lease-0000000002", "semaphore", 2),
            ("8eb6557ec51a32d1e0cb91e4d5e9a5c5__lock__0000000031", "kazoo", 31),
            ("8eb6557ec51a32d1e0cb91e4d5e9a5c5__rlock__0000000031", "kazoo read lock", 31),
        ] {
            let (found, other_number) = known(name).unwrap();
            assert!(found.contains(kind) && other_number == number, "{name}: {found}, {other_number}");
        }
    }

    #[test]
    fn names_with_only_a_similar_ending_belong_to_no_recipe() {
        for name in [
            "foo",
            "lock-",
            "release-0000000001",
            "block-0000000001",
            "x-lock-0000000000",
            "_c_-lock-0000000000",
            "_c_9a794062-lock-0000000000",
            "lock-000000001",
            "job-0000000001",
        ] {
            assert_eq!(known(name), None, "{name}");
        }
    }

    #[test]
    fn of_two_kinds_the_later_one_is_refused_and_both_if_numbers_give_no_order() {
        assert!(is_before(4, Some(5)) && !is_before(5, Some(4)));
        assert!(is_before(7, None), "a contender without a ticket comes after all others");
        assert!(is_before(i32::MIN, Some(4)) && is_before(i32::MAX, Some(4)) && is_before(4, Some(i32::MAX)));
    }

    #[test]
    fn an_error_names_both_kinds_and_the_node() {
        let names = ["other", "lock-0000000001"].map(str::to_owned);
        let error = refuse_contenders("/s", "semaphore", &names).unwrap_err();
        let text = error.to_string();
        assert!(error.kind() == ErrorKind::MixedKinds && !error.is_retryable());
        for part in ["\"/s\"", "semaphore", "mutex", "\"lock-0000000001\""] {
            assert!(text.contains(part), "{text}");
        }
        assert!(refuse_contenders("/s", "semaphore", &names[..1]).is_ok());
    }
}
