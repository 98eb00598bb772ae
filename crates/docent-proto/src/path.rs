/// Error of a path that breaks one of ZooKeeper's rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("path {path:?} {rule}")]
pub struct InvalidPath {
    /// The path.
    pub path: String,
    /// The broken rule, as the end of a sentence.
    pub rule: &'static str,
}

/// Checks `path` against ZooKeeper's rules. It must be absolute, without an empty, `.` or `..` segment,
/// without a trailing slash, and without the characters that the server refuses: control characters,
/// U+D800–F8FF, U+FFF0–FFFF and all above U+FFFF.
///
/// # Errors
/// [`InvalidPath`] with the broken rule.
pub fn validate_path(path: &str) -> Result<(), InvalidPath> {
    match broken_rule(path) {
        None => Ok(()),
        Some(rule) => Err(InvalidPath { path: path.to_owned(), rule }),
    }
}

fn broken_rule(path: &str) -> Option<&'static str> {
    let Some(relative) = path.strip_prefix('/') else {
        return Some(if path.is_empty() { "must not be empty" } else { "must start with '/'" });
    };
    if relative.is_empty() || is_plain(relative) {
        return None;
    }
    if relative.ends_with('/') {
        return Some("must not end with '/'");
    }
    for segment in relative.as_bytes().split(|byte| *byte == b'/') {
        match segment {
            b"" => return Some("must not have an empty segment"),
            b"." | b".." => return Some("must not have a segment '.' or '..'"),
            _ => {}
        }
    }
    relative.chars().any(is_refused).then_some("must not contain a character that ZooKeeper refuses")
}

/// Returns whether a single pass over the bytes shows that the path is valid, which is so for most paths:
/// printable ASCII, and no slash before another slash, before a dot or at the end.
fn is_plain(relative: &str) -> bool {
    let mut last = b'/';
    let is_plain = relative.bytes().all(|byte| {
        let begins_segment = std::mem::replace(&mut last, byte) == b'/';
        (b' '..=b'~').contains(&byte) && !(begins_segment && matches!(byte, b'/' | b'.'))
    });
    is_plain && last != b'/'
}

/// The server checks UTF-16 units, so a character above U+FFFF counts as two surrogates, which the server
/// refuses.
fn is_refused(c: char) -> bool {
    matches!(c, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..)
}

/// Returns the path of the parent: `/` for a top-level node, `None` for the root.
///
/// ```
/// assert_eq!(docent_proto::parent("/a/b"), Some("/a"));
/// assert_eq!(docent_proto::parent("/a"), Some("/"));
/// assert_eq!(docent_proto::parent("/"), None);
/// ```
pub fn parent(path: &str) -> Option<&str> {
    let (parent, name) = path.rsplit_once('/')?;
    match (parent, name) {
        ("", "") => None,
        ("", _) => Some("/"),
        _ => Some(parent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_the_server_accepts_are_valid() {
        for path in ["/", "/a", "/a/b", "/a.b", "/...", "/a b", "/ä/日本"] {
            assert_eq!(validate_path(path), Ok(()), "{path}");
        }
    }

    #[test]
    fn every_broken_rule_is_named_together_with_the_path() {
        for (path, rule) in [
            ("", "must not be empty"),
            ("a", "must start with '/'"),
            ("/a/", "must not end with '/'"),
            ("//", "must not end with '/'"),
            ("/a//b", "must not have an empty segment"),
            ("/./a", "must not have a segment '.' or '..'"),
            ("/a/..", "must not have a segment '.' or '..'"),
            ("/a\0", "must not contain a character that ZooKeeper refuses"),
            ("/a\u{1f}", "must not contain a character that ZooKeeper refuses"),
            ("/a\u{7f}", "must not contain a character that ZooKeeper refuses"),
            ("/a\u{9f}", "must not contain a character that ZooKeeper refuses"),
            ("/a\u{f8ff}", "must not contain a character that ZooKeeper refuses"),
            ("/a\u{fff0}", "must not contain a character that ZooKeeper refuses"),
        ] {
            let error = validate_path(path).unwrap_err();
            assert_eq!((error.path.as_str(), error.rule), (path, rule));
        }
    }
}
