//! Kinds of lines at one path: recipes and layouts whose contenders do not wait for each other.

use super::Line;
use super::name::{is_in_danger_zone, sequence};
use crate::error::{Error, ErrorKind};

/// Kinds of lines, each with the text before the number in its nodes' names.
const MARKERS: &[(&str, &str)] = &[
    ("lock-", "mutex or leader selector"),
    ("latch-", "leader latch"),
    ("__WRIT__", "read/write lock"),
    ("__READ__", "read/write lock"),
    ("lease-", "semaphore's permit"),
    ("__lock__", "lock of kazoo's"),
    ("__rlock__", "kazoo's read lock"),
];

/// Folder of a semaphore's node for the turns, which the servers remove while nobody waits for one.
const TURNS: &str = "locks";

/// Folder of a semaphore's node for the permits, which is there as long as one is out.
const LEASES: &str = "leases";

/// Name of the kind of lines with `marker`.
fn named(marker: &str) -> &str {
    MARKERS.iter().find(|(known, _)| *known == marker).map_or(marker, |(_, kind)| kind)
}

/// Name of a contender of a known kind: `<marker><number>`, with an id before it as Curator, go-zookeeper or
/// kazoo write it. Other names that end alike are nobody's (`release-0000000001`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContenderName<'a> {
    /// Text before the marker: nothing, `_c_<uuid>-`, `_c_<32 digits>-` or `<32 digits>`.
    pub id: &'a str,
    /// Text before the number, such as `lock-`, `latch-`, `lease-`, `__WRIT__` or `__rlock__`.
    pub marker: &'static str,
    /// Number that the servers appended.
    pub number: i32,
}

impl<'a> ContenderName<'a> {
    /// Reads the name of a node; `None` for names of others.
    pub fn parse(name: &'a str) -> Option<Self> {
        MARKERS.iter().find_map(|(marker, _)| {
            let number = sequence(name, marker)?;
            let (id, _) = name.rsplit_once(marker)?;
            is_id(id).then_some(Self { id, marker, number })
        })
    }

    /// True when order by number cannot be relied on: the servers' counter is near its end, or beyond.
    pub fn is_unordered(&self) -> bool {
        is_in_danger_zone(self.number)
    }
}

/// The kind and number of a known contender.
fn known(name: &str) -> Option<(&'static str, i32)> {
    ContenderName::parse(name).map(|contender| (named(contender.marker), contender.number))
}

/// True for what stands before the marker: nothing, `_c_<uuid>-`, `_c_<32 digits>-` or `<32 digits>`.
fn is_id(text: &str) -> bool {
    let protected = text.strip_prefix("_c_").and_then(|id| id.strip_suffix('-'));
    let id = protected.unwrap_or(text);
    let lengths: &[usize] = if protected.is_some() { &[32, 36] } else { &[0, 32] };
    lengths.contains(&id.len()) && id.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// Error of a contender of the kind `ours` at `path`, where `found` shows that the path is used by `theirs`.
fn mixed(operation: &'static str, path: &str, ours: &str, theirs: &str, found: &str) -> Error {
    let detail =
        format!("this is a {ours}, and {found:?} that of a {theirs}: they do not wait for each other");
    Error::new(ErrorKind::MixedKinds, operation).at(path).because(detail)
}

/// Refuses a recipe of the kind `ours` at `path`, whose contenders are not children of that node themselves,
/// where `names` has a known contender.
///
/// # Errors
/// `MixedKinds`, which names both kinds.
pub fn refuse_contenders(path: &str, ours: &str, names: &[String]) -> Result<(), Error> {
    let contender = names.iter().find_map(|name| Some((name, known(name)?.0)));
    contender.map_or(Ok(()), |(name, theirs)| Err(mixed("acquire", path, ours, theirs, name)))
}

/// True when one with the number `theirs` came before one with `own`, or may have.
fn is_before(theirs: i32, own: Option<i32>) -> bool {
    // Kinds share the servers' counter: of two nodes the later one has the higher number.
    own.is_none_or(|own| theirs < own || is_in_danger_zone(theirs) || is_in_danger_zone(own))
}

impl Line {
    /// Refuses the ticket `own` where one of another kind came before it: of two kinds that stand at one path
    /// at least the later one sees the other, since each takes its ticket before it lists. Without `own` it
    /// is about a ticket yet to be taken.
    ///
    /// One that came later is not looked at: it is refused itself if it is ours, and a line that is in use
    /// goes on in spite of it.
    ///
    /// # Errors
    /// `MixedKinds`, which names both kinds.
    pub(super) fn refuse_others(&self, own: Option<&str>, names: &[String]) -> Result<(), Error> {
        let number = own.and_then(|own| self.contender(own)).map(|(number, _)| number);
        let other = names.iter().filter(|name| self.contender(name).is_none()).find_map(|name| {
            let (theirs, its) = known(name)?;
            is_before(its, number).then_some((name, theirs))
        });
        other.map_or(Ok(()), |(name, theirs)| Err(self.mixed(theirs, name)))
    }

    /// As [`refuse_others`](Self::refuse_others), where the ticket was just taken, or is about to be: the
    /// node of a semaphore is no line either.
    pub(super) async fn refuse_all_others(&self, own: Option<&str>, names: &[String]) -> Result<(), Error> {
        let has = |folder: &str| names.iter().any(|name| name == folder);
        // One folder alone may be somebody else's.
        if has(LEASES) && (has(TURNS) || Box::pin(self.has_permits()).await?) {
            return Err(self.mixed("semaphore", LEASES));
        }
        self.refuse_others(own, names)
    }

    /// True when the folder of a semaphore's permits has one.
    async fn has_permits(&self) -> Result<bool, Error> {
        match self.client().children(&format!("{}/{LEASES}", self.path())).await {
            Ok(children) => Ok(children.names.iter().any(|name| known(name).is_some())),
            Err(error) if matches!(error.kind(), ErrorKind::NoNode | ErrorKind::NoAuth) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn mixed(&self, theirs: &str, found: &str) -> Error {
        mixed(self.operation(), self.path(), named(self.marker()), theirs, found)
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
            ("8eb6557ec51a32d1e0cb91e4d5e9a5c5__rlock__0000000031", "kazoo's read lock", 31),
        ] {
            let (found, its) = known(name).unwrap();
            assert!(found.contains(kind) && its == number, "{name}: {found}, {its}");
        }
    }

    #[test]
    fn names_that_only_end_alike_are_nobodys() {
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
    fn of_two_kinds_the_later_one_is_refused_and_both_where_numbers_tell_no_order() {
        assert!(is_before(4, Some(5)) && !is_before(5, Some(4)));
        assert!(is_before(7, None), "one that has no ticket yet comes after all");
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
