use std::fmt;

/// Maximum length of a label in bytes.
const LONGEST: usize = 128;

/// Identity of a client, as written in the nodes of its locks, permits and claims.
///
/// One line of text that people and tools can read: the host, the process id and, if the client has one, its
/// [label](crate::ClientBuilder::label).
///
/// ```
/// # use docent_core::ClientIdentity;
/// let identity = ClientIdentity::parse("web-1 (pid 4711, nightly import)").unwrap();
/// assert_eq!((identity.host(), identity.pid()), ("web-1", 4711));
/// assert_eq!(identity.label(), Some("nightly import"));
/// assert_eq!(identity.to_string(), "web-1 (pid 4711, nightly import)");
/// assert!(ClientIdentity::parse("10.0.0.7").is_none());      // Curator's default
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientIdentity {
    host: String,
    pid: u32,
    label: Option<String>,
}

impl ClientIdentity {
    /// Returns the identity of this process.
    pub(crate) fn local(label: Option<String>) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { host, pid: std::process::id(), label }
    }

    /// Parses an identity. Returns `None` for any other text, such as a custom identity or a text written by
    /// Curator.
    pub fn parse(text: &str) -> Option<Self> {
        let (host, rest) = text.split_once(" (pid ")?;
        let inside = rest.strip_suffix(')')?;
        let (pid, label) = match inside.split_once(", ") {
            Some((pid, label)) => (pid, Some(label.to_owned())),
            None => (inside, None),
        };
        Some(Self { host: host.to_owned(), pid: pid.parse().ok()?, label })
    }

    /// Returns the name of the host, or of the container if the process runs in one.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the id of the process on its host.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the label that was set in the client's builder.
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }
}

impl fmt::Display for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.label {
            Some(label) => write!(f, "{} (pid {}, {label})", self.host, self.pid),
            None => write!(f, "{} (pid {})", self.host, self.pid),
        }
    }
}

/// Returns the rule that a label breaks, if any.
pub(crate) fn broken_rule(label: &str) -> Option<String> {
    if label.is_empty() {
        Some("label \"\" must not be empty".to_owned())
    } else if label.len() > LONGEST {
        Some(format!("a label of {} bytes must have at most {LONGEST}", label.len()))
    } else if label.chars().any(char::is_control) {
        Some(format!("label {label:?} must be one line without control characters"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_read_as_it_was_written() {
        for label in [None, Some("import"), Some("a, b (c)")] {
            let identity =
                ClientIdentity { host: "web-1".to_owned(), pid: 12, label: label.map(str::to_owned) };
            assert_eq!(ClientIdentity::parse(&identity.to_string()), Some(identity));
        }
    }

    #[test]
    fn other_texts_are_no_identities() {
        for text in ["", "10.0.0.7", "web-1", "web-1 (pid )", "web-1 (pid x)", "web-1 (pid 1", "(pid 1)"] {
            assert_eq!(ClientIdentity::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_label_is_one_short_line() {
        assert_eq!(broken_rule("nightly import"), None);
        for label in ["", "two\nlines", &"x".repeat(LONGEST + 1)] {
            assert!(broken_rule(label).is_some(), "{label:?}");
        }
    }
}
