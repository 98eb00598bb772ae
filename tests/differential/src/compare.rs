use crate::run::Record;
use std::fmt;

/// Difference between the servers that is meant to be.
#[derive(Debug)]
pub struct Allowed {
    /// Reason why the embedded server does otherwise.
    pub reason: &'static str,
    /// True for the lines of the real server and of the embedded one that differ so.
    applies: fn(&str, &str) -> bool,
}

/// Every difference that is meant to be.
pub const ALLOWED: &[Allowed] = &[
    Allowed {
        reason: "the real server writes a character beyond U+FFFF of a path as two surrogates, which is no UTF-8, and \
                 which no client can read; no node has such a path, so that only watches on missing nodes tell of it",
        applies: |real, embedded| real.replace(SURROGATES, "") == embedded.replace(BEYOND, ""),
    },
    Allowed {
        reason: "the real server sends what it had done of a multi behind the code that says that it failed as a \
                 whole; no client reads a body behind an error",
        applies: |real, embedded| embedded.contains(" -5 ") && without_rest(real) == without_rest(embedded),
    },
];

/// A line without the bytes that are no part of a reply.
fn without_rest(line: &str) -> &str {
    line.split(" rest=").next().unwrap_or(line)
}

/// Character beyond U+FFFF that paths of scripts have, as it is shown where surrogates were sent for it.
const SURROGATES: &str = "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}";
const BEYOND: &str = "\u{1f600}";

/// The first difference between two records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The step that both did.
    pub step: String,
    /// Line of the real server; empty where it said nothing more.
    pub real: String,
    /// Line of the embedded server; empty where it said nothing more.
    pub embedded: String,
}

/// Compares what a real server and the embedded one did.
pub fn compare(real: &Record, embedded: &Record) -> Option<Difference> {
    let (mut left, mut right) = (real.lines(), embedded.lines());
    let mut step = "";
    loop {
        let (real, embedded) = (left.next(), right.next());
        if real.is_none() && embedded.is_none() {
            return None;
        }
        let (real, embedded) = (real.unwrap_or(""), embedded.unwrap_or(""));
        if real == embedded && real.starts_with('>') {
            step = real;
        }
        if real != embedded && !ALLOWED.iter().any(|allowed| (allowed.applies)(real, embedded)) {
            return Some(Difference { step: step.into(), real: real.into(), embedded: embedded.into() });
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.step)?;
        writeln!(f, "  real      {}", self.real)?;
        writeln!(f, "  embedded  {}", self.embedded)
    }
}
