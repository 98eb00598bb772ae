use crate::options::Options;
use crate::outcome::{Failure, Outcome};
use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};

/// How many events before the end of a failed run are shown for each failure.
const LAST: usize = 60;

/// How many failures are shown.
const SHOWN: usize = 5;

/// Prints what there is to say about a run: the line for machines comes last.
pub(crate) fn print(options: &Options, outcome: &Outcome) {
    let mut out = BufWriter::new(io::stdout().lock());
    // Nobody to read it is no failure of the run.
    let _ = write_all(&mut out, options, outcome).and_then(|()| out.flush());
}

fn write_all(out: &mut impl Write, options: &Options, outcome: &Outcome) -> io::Result<()> {
    if options.trace {
        write_history(out, outcome)?;
    }
    let failures = outcome.failures();
    for failure in failures.iter().take(SHOWN) {
        write_failure(out, options, outcome, failure)?;
    }
    if failures.len() > SHOWN {
        writeln!(out, "and {} more", failures.len() - SHOWN)?;
    }
    writeln!(out, "recipe={} {outcome}", options.recipe)
}

fn write_history(out: &mut impl Write, outcome: &Outcome) -> io::Result<()> {
    writeln!(out, "{:?}", outcome.setting)?;
    let mut journal = outcome.journal.iter().peekable();
    for event in &outcome.events {
        while let Some(transaction) = journal.next_if(|next| next.time_ms <= millis(event.at)) {
            writeln!(out, "{:>10.3} server {transaction:?}", transaction.time_ms as f64 / 1e3)?;
        }
        writeln!(out, "{event}")?;
    }
    Ok(())
}

fn write_failure(
    out: &mut impl Write,
    options: &Options,
    outcome: &Outcome,
    failure: &Failure,
) -> io::Result<()> {
    let seed = outcome.setting.seed;
    writeln!(out, "FAILED seed {seed}, recipe {}, {}: {}", options.recipe, failure.invariant, failure.what)?;
    let words: BTreeSet<&str> = failure.words.iter().map(String::as_str).collect();
    let lines: Vec<String> = outcome
        .events
        .iter()
        .rev()
        .map(ToString::to_string)
        .filter(|line| words.is_empty() || line.split(|c: char| !c.is_alphanumeric()).any(|word| words.contains(word)))
        .take(LAST)
        .collect();
    for line in lines.iter().rev() {
        writeln!(out, "    {line}")?;
    }
    Ok(())
}

fn millis(at: std::time::Duration) -> i64 {
    i64::try_from(at.as_millis()).unwrap_or(i64::MAX)
}
