use std::fmt;

/// Maximum number of lines of one panic that are repeated.
const MOST_LINES: usize = 40;

/// Panics of failed tests, extracted from the output of test harnesses and repeated at the end of the run.
#[derive(Debug, Default)]
pub(super) struct Panics {
    pub(super) failed: Vec<Failed>,
    /// True if the next line belongs to the message of a panic.
    inside: bool,
}

/// A failed test.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) test: String,
    /// Its panics.
    pub(super) lines: Vec<String>,
    left_out: usize,
}

impl Panics {
    /// Adds a line of a test harness.
    pub(super) fn add_line(&mut self, line: &str) {
        if let Some(test) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
            self.failed.push(Failed::without_panic(test));
            self.inside = false;
            return;
        }
        self.inside = starts_panic(line) || self.inside && !ends_panic(line);
        let Some(failed) = self.failed.last_mut().filter(|_| self.inside && !line.is_empty()) else { return };
        match failed.lines.len() < MOST_LINES {
            true => failed.lines.push(line.to_owned()),
            false => failed.left_out += 1,
        }
    }
}

fn starts_panic(line: &str) -> bool {
    line.starts_with("thread '") && line.contains(" panicked at ")
}

fn ends_panic(line: &str) -> bool {
    line.starts_with("stack backtrace:")
        || line.starts_with("note: run with `RUST_BACKTRACE")
        || line.starts_with("failures:")
        || line.starts_with("test result: ")
}

impl Failed {
    /// Returns a test that failed without a panic in the output.
    pub(super) fn without_panic(test: &str) -> Self {
        Self { test: test.to_owned(), lines: Vec::new(), left_out: 0 }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { test, lines, left_out } = self;
        writeln!(f, "failed: {test}")?;
        for line in lines {
            writeln!(f, "  {line}")?;
        }
        if *left_out > 0 {
            writeln!(f, "  … and {left_out} more lines above")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panics(lines: &[&str]) -> String {
        let mut panics = Panics::default();
        lines.iter().for_each(|line| panics.add_line(line));
        panics.failed.iter().map(Failed::to_string).collect()
    }

    #[test]
    fn every_failed_test_is_reported_with_its_panics_and_without_their_traces() {
        let text = panics(&[
            "test one ... FAILED",
            "failures:",
            "",
            "---- one stdout ----",
            "20000 items",
            "",
            "thread 'one' (12472) panicked at src/cases.rs:61:9:",
            "2 of 164 cases failed:",
            "first case: it was lost",
            "stack backtrace:",
            "   0: __rustc::rust_begin_unwind",
            "",
            "---- two stdout ----",
            "thread 'worker' panicked at src/b.rs:1:1:",
            "no",
            "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace",
            "thread 'two' panicked at src/c.rs:1:1:",
            "the worker failed",
            "",
            "",
            "failures:",
            "    one",
            "    two",
            "",
            "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
            "     Running unittests src/lib.rs",
        ]);
        let expected = [
            "failed: one",
            "  thread 'one' (12472) panicked at src/cases.rs:61:9:",
            "  2 of 164 cases failed:",
            "  first case: it was lost",
            "failed: two",
            "  thread 'worker' panicked at src/b.rs:1:1:",
            "  no",
            "  thread 'two' panicked at src/c.rs:1:1:",
            "  the worker failed",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_long_message_is_cut() {
        let mut lines = vec!["---- one stdout ----", "thread 'one' panicked at src/a.rs:1:1:"];
        lines.extend(std::iter::repeat_n("a line", MOST_LINES + 1));
        let text = panics(&lines);
        assert_eq!(text.lines().count(), 1 + MOST_LINES + 1);
        assert!(text.ends_with("  … and 2 more lines above\n"), "{text}");
    }

    #[test]
    fn nothing_is_reported_when_nothing_failed() {
        assert_eq!(
            panics(&["test one ... ok", "thread 'one' panicked at a", "test result: ok. 1 passed"]),
            ""
        );
    }
}
