use std::fmt;

/// Record of a run: the steps, and beneath each everything that the server sent. It is the same for every
/// server that does the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    lines: Vec<String>,
}

impl Record {
    pub(crate) fn new(lines: Vec<String>) -> Self {
        Self { lines }
    }

    /// Reads what was printed.
    pub fn parse(text: &str) -> Self {
        Self { lines: text.lines().map(str::to_owned).collect() }
    }

    /// Its lines. A step begins with `>`.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}
