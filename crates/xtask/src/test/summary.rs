use std::fmt;
use std::ops::AddAssign;

/// Outcomes of tests, over any number of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Summary {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) skipped: u64,
}

impl Summary {
    /// Adds a line of a test harness, if the line summarizes a run.
    pub(super) fn add_line(&mut self, line: &str) {
        // A test that prints without ending its line may have printed the start of this line.
        let Some((_, counts)) = line.split_once("test result: ") else { return };
        for (number, word) in counts.split([' ', '.', ';']).zip(counts.split([' ', '.', ';']).skip(1)) {
            let Ok(number) = number.parse::<u64>() else { continue };
            match word {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }
}

impl AddAssign for Summary {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(lines: &[&str]) -> Summary {
        let mut summary = Summary::default();
        lines.iter().for_each(|line| summary.add_line(line));
        summary
    }

    #[test]
    fn all_runs_are_summed_up_including_failed_ones() {
        let summary = summary(&[
            "running 5 tests",
            "test result: ok. 3 passed; 0 failed; 2 ignored; 0 measured; 7 filtered out; finished in 0.00s",
            "test result: FAILED. 10 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s",
        ]);
        assert_eq!(summary, Summary { passed: 13, failed: 1, skipped: 2 });
        assert_eq!(summary.to_string(), "13 passed, 1 failed, 2 skipped");
    }

    #[test]
    fn other_lines_are_not_counted() {
        assert_eq!(summary(&["test a ... ok", "4 passed", "2 failed"]), Summary::default());
    }
}
