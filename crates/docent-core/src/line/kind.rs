//! Kinds of lines that may share a path: recipes and layouts whose contenders do not wait for each other.

use super::Line;
use super::name::{is_in_danger_zone, sequence};
use crate::error::{Error, ErrorKind};

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
