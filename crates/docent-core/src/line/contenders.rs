use super::name::sequence;
use crate::error::Error;
use crate::guard::Role;
use std::borrow::Cow;

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
        Err(Error::invalid_input("line", format!("marker {marker:?} {rule}")))
    }

    /// The number and role of a contender; `None` for names of others.
    pub(super) fn find(&self, name: &str) -> Option<(i32, Role)> {
        self.0.iter().find_map(|(marker, role)| Some((sequence(name, marker)?, *role)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
