use super::habits::Habits;
use super::sentences::sentences;
use crate::cargo::root;
use crate::pages::is_generated;
use crate::sources::files;
use anyhow::{Context, Result};
use std::cmp::Reverse;
use std::fs;

/// Number of pages that are listed.
const WORST: usize = 10;

/// Pages with less prose than this are not listed: one phrase in three sentences is not a habit.
const FEWEST_SENTENCES: usize = 20;

/// Sentences of a file, and phrases in them that are hard to read.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    sentences: usize,
    found: usize,
}

impl Count {
    fn add(&mut self, other: Self) {
        self.sentences += other.sentences;
        self.found += other.found;
    }

    fn per_thousand(self) -> usize {
        1_000 * self.found / self.sentences.max(1)
    }
}

/// Prints how many phrases per thousand sentences are hard to read, and the files that have the most.
pub(crate) fn print() -> Result<()> {
    let (root, habits) = (root(), Habits::new()?);
    let mut all = Count::default();
    let mut counts = Vec::new();
    let pages = [files(&root, "", ".md")?, files(&root, "", ".rs")?].concat();
    for path in pages.into_iter().filter(|path| !is_generated(path)) {
        let text = fs::read_to_string(root.join(&path)).with_context(|| format!("cannot read {path}"))?;
        let sentences = sentences(&path, &text);
        let found = sentences.iter().map(|sentence| habits.found(sentence).count()).sum();
        let count = Count { sentences: sentences.len(), found };
        all.add(count);
        counts.push((path, count));
    }
    println!("{} phrases per 1,000 sentences are hard to read; the files with the most:", all.per_thousand());
    counts.retain(|(_, count)| count.sentences >= FEWEST_SENTENCES && count.found > 0);
    counts.sort_by_key(|(_, count)| Reverse(count.per_thousand()));
    for (path, count) in counts.iter().take(WORST) {
        println!("{:6} {path}", count.per_thousand());
    }
    Ok(())
}
