use std::fmt::Write;

/// Step of a key: `server` and `port` in `server.port`, `hosts` and `[0]` in `hosts[0]`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// Place in a list.
    Index(usize),
    Name(String),
}

/// Maximum number of steps.
pub(crate) const MAX_STEPS: usize = 64;

/// Splits a key into its steps. Returns `None` if there are more than 64.
///
/// Dots separate names. Brackets contain an index, or a name with dots, as in `logging[org.example]`. A
/// bracket without its counterpart belongs to the name.
pub(crate) fn steps(key: &str) -> Option<Vec<Step>> {
    let (mut steps, mut rest) = (Vec::new(), key);
    while steps.len() < MAX_STEPS {
        rest = match bracketed(rest) {
            Some((inside, after)) => {
                steps.push(inside.parse().map_or_else(|_| Step::Name(inside.to_owned()), Step::Index));
                after
            }
            None => {
                let (name, after) = rest.split_at(name_length(rest));
                steps.push(Step::Name(name.to_owned()));
                after
            }
        };
        match rest.strip_prefix('.') {
            Some(next) => rest = next,
            None if rest.is_empty() => return Some(steps),
            None => {}
        }
    }
    None
}

/// Returns the text in the brackets at the start, and what follows them.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_prefix('[')?;
    let (inside, after) = inside.split_at(inside.find(['[', ']'])?);
    let after = after.strip_prefix(']')?;
    (after.is_empty() || after.starts_with(['.', '['])).then_some((inside, after))
}

/// Returns the length of the name at the start.
fn name_length(text: &str) -> usize {
    let ends = |at: &usize| text[*at..].starts_with('.') || bracketed(&text[*at..]).is_some();
    text.match_indices(['.', '[']).map(|(at, _)| at).find(ends).unwrap_or(text.len())
}

/// Returns the key of a step below `key`, which is empty for the root.
pub(crate) fn below(key: &str, step: &Step) -> String {
    let mut key = key.to_owned();
    match step {
        Step::Index(index) => write!(key, "[{index}]").expect("a string can always be written to"),
        Step::Name(name) if name.contains(['.', '[']) || name.is_empty() => {
            write!(key, "[{name}]").expect("a string can always be written to");
        }
        Step::Name(name) if key.is_empty() => key.push_str(name),
        Step::Name(name) => write!(key, ".{name}").expect("a string can always be written to"),
    }
    key
}

/// Returns whether two names or keys differ only in case, hyphens and underscores: `max-threads`,
/// `maxThreads` and `max_threads`.
pub fn is_same_key(one: &str, other: &str) -> bool {
    let significant = |key: &str| -> Vec<char> {
        key.chars().filter(|char| !matches!(char, '-' | '_')).flat_map(char::to_lowercase).collect()
    };
    one == other || significant(one) == significant(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_split_at_dots_and_brackets_and_can_be_written_again() {
        for (key, wanted) in [
            ("a", "a"),
            ("a.b.c", "a|b|c"),
            ("a[0]", "a|0"),
            ("a[0].b[12][3]", "a|0|b|12|3"),
            ("[4].x", "4|x"),
            ("logging[org.example].level", "logging|org.example|level"),
            ("a[]", "a|"),
            ("a[0", "a[0"),
            ("a[0]b", "a[0]b"),
            ("a]", "a]"),
        ] {
            let steps = steps(key).unwrap();
            let shown = steps.iter().map(|step| match step {
                Step::Index(index) => index.to_string(),
                Step::Name(name) => name.clone(),
            });
            assert_eq!(shown.collect::<Vec<_>>().join("|"), wanted);
            if !wanted.contains("a[0") {
                assert_eq!(steps.iter().fold(String::new(), |key, step| below(&key, step)), key);
            }
        }
        assert_eq!(steps("").unwrap(), [Step::Name(String::new())]);
        assert_eq!(steps("a..b").unwrap().len(), 3);
        assert_eq!(steps(&vec!["a"; MAX_STEPS].join(".")).unwrap().len(), MAX_STEPS);
        assert!(steps(&vec!["a"; MAX_STEPS + 1].join(".")).is_none());
    }

    #[test]
    fn names_are_the_same_in_every_style() {
        for same in ["maxThreads", "max_threads", "MAX-THREADS", "max-threads"] {
            assert!(is_same_key(same, "max-threads"), "{same}");
        }
        for other in ["max-thread", "max.threads", "maxthreads2"] {
            assert!(!is_same_key(other, "max-threads"), "{other}");
        }
    }
}
