use crate::options::Options;
use crate::outcome::{Outcome, SHOWN};
use std::io::{self, BufWriter, Write};

/// Prints the report of a run. The last line is for programs.
pub(crate) fn print(options: &Options, outcome: &Outcome) {
    let mut out = BufWriter::new(io::stdout().lock());
    // A closed pipe is not a failure of the run.
    let _ = write_all(&mut out, options, outcome).and_then(|()| out.flush());
}

fn write_all(out: &mut impl Write, options: &Options, outcome: &Outcome) -> io::Result<()> {
    if options.trace {
        write_history(out, outcome)?;
    }
    let Outcome { setting, failures, .. } = outcome;
    for failure in failures.iter().take(SHOWN) {
        writeln!(
            out,
            "FAILED seed {}, recipe {}, {}: {}",
            setting.seed, options.recipe, failure.name, failure.text
        )?;
    }
    if failures.len() > SHOWN {
        writeln!(out, "and {} more", failures.len() - SHOWN)?;
    }
    writeln!(out, "recipe={} {outcome}", options.recipe)
}

/// Writes the record and the journal, merged by time.
fn write_history(out: &mut impl Write, outcome: &Outcome) -> io::Result<()> {
    writeln!(out, "{:?}", outcome.setting)?;
    let mut journal = outcome.run.journal.iter().peekable();
    for event in &outcome.run.events {
        while let Some(change) = journal.next_if(|change| change.at <= event.at) {
            let (at, owner) = (change.at.as_secs_f64(), change.owner);
            let (zxid, kind, path, session) = (change.zxid, change.kind, &change.path, change.session);
            writeln!(out, "{at:>10.4} server  {zxid} {kind:?} {path} by {session:#x} owner {owner:#x}")?;
        }
        writeln!(out, "{event}")?;
    }
    Ok(())
}
