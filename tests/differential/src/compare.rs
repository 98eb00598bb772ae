use crate::run::Record;
use std::fmt;

/// A difference between the servers that is intended.
#[derive(Debug)]
pub struct Allowed {
    /// Why the embedded server behaves differently.
    pub reason: &'static str,
    /// Returns true if this reason explains the difference between a line of the real server and one of the
    /// embedded server.
    applies: fn(&str, &str) -> bool,
}

/// Every intended difference.
pub const ALLOWED: &[Allowed] = &[
    Allowed {
        reason: "the real server writes characters beyond U+FFFF in paths as two surrogates, which is not \
                 UTF-8, and which no client can read; no node has such a path, so only watches on missing \
                 nodes report one",
        applies: |real, embedded| real.replace(SURROGATES, "") == embedded.replace(BEYOND, ""),
    },
    Allowed {
        reason: "the real server sends the partial results of a failed multi after the error code of the \
                 whole multi; no client reads a body after an error",
        applies: |real, embedded| embedded.contains(" -5 ") && without_rest(real) == without_rest(embedded),
    },
];

/// A line without the bytes that do not belong to a reply.
fn without_rest(line: &str) -> &str {
    line.split(" rest=").next().unwrap_or(line)
}

/// The character beyond U+FFFF in paths of scripts, as it appears if a server sent surrogates for it.
const SURROGATES: &str = "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}";
const BEYOND: &str = "\u{1f600}";

/// The first difference between two records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The step, which is the same in both records.
    pub step: String,
    /// Line of the real server; empty if its record has ended.
    pub real: String,
    /// Line of the embedded server; empty if its record has ended.
    pub embedded: String,
}

/// Compares the records of a real server and of the embedded one.
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
