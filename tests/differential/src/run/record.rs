use std::fmt;

/// The record of a run: the steps, each followed by everything that the server sent. The record is the same
/// for every server with the same behaviour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    lines: Vec<String>,
}

impl Record {
    pub(crate) fn new(lines: Vec<String>) -> Self {
        Self { lines }
    }

    /// Parses a printed record.
    pub fn parse(text: &str) -> Self {
        Self { lines: text.lines().map(str::to_owned).collect() }
    }

    /// The lines of the record. A step begins with `>`.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}
