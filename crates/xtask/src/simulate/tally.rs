use super::binary::Done;
use std::collections::BTreeMap;
use std::time::Duration;

/// Outcomes of any number of runs.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) runs: u64,
    /// Number of runs of each recipe.
    pub(crate) recipes: BTreeMap<String, u64>,
    /// Recipe and seed of each failed run, with its failure.
    pub(crate) failures: Vec<(String, String)>,
    /// Sums of all counts, by name.
    pub(crate) counts: BTreeMap<String, u64>,
    /// Time spent in all processes together.
    pub(crate) process_time: Duration,
    pub(crate) slowest: Option<(Duration, String)>,
}

/// Figures that a run prints in its last line.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    words: BTreeMap<String, String>,
}

impl Line {
    /// Parses the last line of an output, if it has the expected form.
    pub(crate) fn last_of(output: &str) -> Option<Self> {
        let words: BTreeMap<String, String> = output
            .lines()
            .last()?
            .split_whitespace()
            .filter_map(|word| word.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        words.contains_key("verdict").then_some(Self { words })
    }

    pub(crate) fn hash(&self) -> Option<&str> {
        self.words.get("hash").map(String::as_str)
    }

    pub(crate) fn is_ok(&self) -> bool {
        self.words.get("verdict").is_some_and(|verdict| verdict == "ok")
    }

    /// Names of the violated invariants, without repetition.
    pub(crate) fn broken(&self) -> Option<&str> {
        self.words.get("broken").map(String::as_str)
    }

    fn counts(&self) -> impl Iterator<Item = (&String, u64)> {
        let no_counts = ["seed", "hash", "recipe", "verdict", "broken"];
        self.words
            .iter()
            .filter(move |(key, _)| !no_counts.contains(&key.as_str()))
            .filter_map(|(key, value)| Some((key, value.parse().ok()?)))
    }
}

/// Returns the failure of a run, if it failed.
pub(crate) fn wrong(done: &Done) -> Option<String> {
    let text = format!("{}{}", done.output, done.error);
    match (done.status, Line::last_of(&done.output)) {
        (None, _) => Some(format!("{text}the run hangs: killed after {:.0} s", done.took.as_secs_f64())),
        (Some(status), Some(line)) if status.success() && line.is_ok() => None,
        (Some(status), _) => Some(format!("{text}{status}")),
    }
}

impl Tally {
    /// Adds a run of a recipe with `seed`.
    pub(crate) fn add(&mut self, recipe: &str, seed: u64, done: &Done) {
        let run = format!("{recipe} {seed}");
        self.runs += 1;
        *self.recipes.entry(recipe.to_owned()).or_default() += 1;
        self.process_time += done.took;
        self.slowest = self.slowest.take().max(Some((done.took, run.clone())));
        for (name, count) in Line::last_of(&done.output).iter().flat_map(Line::counts) {
            *self.counts.entry(name.clone()).or_default() += count;
        }
        if let Some(what) = wrong(done) {
            self.failures.push((run, what));
        }
    }

    pub(crate) fn count(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn done(output: &str, program: &str) -> Done {
        let status = Command::new(program).status().unwrap();
        let (output, error) = (output.to_owned(), String::new());
        Done { output, error, took: Duration::from_secs(1), status: Some(status) }
    }

    #[test]
    fn counts_are_summed_up() {
        let mut tally = Tally::default();
        tally.add("mutex", 1, &done("recipe=mutex seed=1 hash=0a verdict=ok grants=3 fault.Cut=1\n", "true"));
        tally.add("mutex", 2, &done("some history\nseed=2 hash=0b verdict=ok grants=4\n", "true"));
        assert_eq!((tally.runs, tally.count("grants"), tally.count("fault.Cut")), (2, 7, 1));
        assert_eq!((tally.count("seed"), tally.count("hash")), (0, 0));
        assert!(tally.failures.is_empty());
    }

    #[test]
    fn a_run_is_good_only_if_line_and_status_agree() {
        let good = "seed=1 hash=0a verdict=ok\n";
        assert_eq!(wrong(&done(good, "true")), None);
        assert!(wrong(&done(good, "false")).is_some());
        assert!(wrong(&done("", "true")).is_some());
        assert!(wrong(&done("seed=1 verdict=failed\n", "true")).is_some());
        assert!(
            wrong(&Done { status: None, ..done(good, "true") }).is_some_and(|what| what.contains("hangs"))
        );
    }
}
