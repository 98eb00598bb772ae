use super::sentences::sentences;
use super::width;
use anyhow::{Result, ensure};
use std::fmt;

/// Most of 1,000 doc sentences that may begin with a word that names nothing.
const MOST_NAMELESS: usize = 2;

/// Figures of all files measured so far, with the places that break a rule.
#[derive(Debug)]
pub(super) struct Report {
    width: usize,
    sentences: usize,
    nameless: Vec<String>,
    comments: usize,
    wide: Vec<String>,
}

impl Report {
    pub(super) fn new(width: usize) -> Self {
        Self { width, sentences: 0, nameless: Vec::new(), comments: 0, wide: Vec::new() }
    }

    /// Measures one file.
    pub(super) fn add(&mut self, path: &str, source: &str) {
        for sentence in sentences(source) {
            self.sentences += 1;
            if sentence.is_nameless() {
                self.nameless.push(format!("{path}:{}: {}", sentence.line, sentence.text));
            }
        }
        for (line, number) in source.lines().zip(1..) {
            self.comments += usize::from(width::comment(line).is_some());
            if width::is_too_wide(line, self.width) {
                self.wide.push(format!("{path}:{number}: {} columns", line.chars().count()));
            }
        }
    }

    /// Judges the figures.
    ///
    /// # Errors
    /// When a rule is broken, with every place that breaks it.
    pub(super) fn verdict(&self) -> Result<()> {
        let mut broken = Vec::new();
        if self.nameless.len() * 1000 > MOST_NAMELESS * self.sentences {
            broken.push(format!("name the subject at the beginning:\n{}", self.nameless.join("\n")));
        }
        if !self.wide.is_empty() {
            broken.push(format!("wrap at {} columns:\n{}", self.width, self.wide.join("\n")));
        }
        ensure!(broken.is_empty(), "{}", broken.join("\n\n"));
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { width, sentences, comments, .. } = self;
        let (nameless, wide) = (self.nameless.len(), self.wide.len());
        let tenths = nameless * 10_000 / (*sentences).max(1);
        let share = format!("{}.{}", tenths / 10, tenths % 10);
        writeln!(
            f,
            "{nameless} of {sentences} doc sentences begin with What, Who, Whoever, Whose or Whatever: {share} in 1,000, of {MOST_NAMELESS} allowed"
        )?;
        write!(f, "{wide} of {comments} comment lines are wider than {width} columns, of 0 allowed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(sources: &[&str]) -> Report {
        let mut report = Report::new(40);
        sources.iter().for_each(|source| report.add("src/a.rs", source));
        report
    }

    #[test]
    fn a_nameless_sentence_fails_with_its_place() {
        let report =
            report(&["//! Good docs.\n", "fn a() {}\n\n/// A guard. What is\n/// held.\nfn b() {}\n"]);
        let told = report.verdict().unwrap_err().to_string();
        assert_eq!(told, "name the subject at the beginning:\nsrc/a.rs:3: What is held.");
        assert!(report.to_string().starts_with("1 of 3 doc sentences"), "{report}");
        assert!(report.to_string().contains(": 333.3 in 1,000, of 2 allowed\n"), "{report}");
    }

    #[test]
    fn two_nameless_sentences_in_1000_are_allowed_and_three_are_not() {
        let good = "/// Good.\n".repeat(998);
        assert!(report(&[&good, "/// What.\n", "/// Who.\n"]).verdict().is_ok());
        assert!(report(&[&good, "/// What.\n", "/// Who.\n", "/// Whose.\n"]).verdict().is_err());
    }

    #[test]
    fn a_wide_comment_fails_with_its_place() {
        let report = report(&["fn a() {\n    // this comment is of some length, which is\n}\n"]);
        let told = report.verdict().unwrap_err().to_string();
        assert_eq!(told, "wrap at 40 columns:\nsrc/a.rs:2: 47 columns");
        assert!(report.to_string().ends_with("1 of 1 comment lines are wider than 40 columns, of 0 allowed"));
    }

    #[test]
    fn nothing_measured_breaks_no_rule() {
        assert!(report(&[]).verdict().is_ok());
    }
}
