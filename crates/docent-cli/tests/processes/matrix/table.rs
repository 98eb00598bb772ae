use super::fault::FAULTS;
use super::kind::KINDS;
use super::plan::Plan;
use super::trial::Outcome;
use std::fmt;

/// Outcomes of trials, as a table of kinds and faults.
pub(super) struct Table(pub(super) Vec<(Plan, Outcome)>);

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:30}", "")?;
        FAULTS.iter().try_for_each(|fault| write!(f, "{:>11}", format!("{fault:?}")))?;
        writeln!(f)?;
        for kind in &KINDS {
            write!(f, "{:30}", kind.name)?;
            for fault in FAULTS {
                let here =
                    self.0.iter().filter(|(plan, _)| plan.fault == fault && plan.kind.name == kind.name);
                let letters: String = here.map(|(_, outcome)| letter(*outcome)).collect();
                write!(f, "{letters:>11}")?;
            }
            writeln!(f)?;
        }
        let count = |outcome| self.0.iter().filter(|(_, it)| *it == outcome).count();
        write!(
            f,
            "{} trials: {} clean (.); {} with a process that was alive briefly (b) or had escaped (e: {}), as the \
             README says; {} in which the lock was kept for a process of another user (r); {} overlaps (O); {} \
             locks that were not released (K)",
            self.0.len(),
            count(Outcome::Clean),
            count(Outcome::Brief),
            count(Outcome::Escape),
            count(Outcome::Refused),
            count(Outcome::Overlap),
            count(Outcome::Kept),
        )
    }
}

fn letter(outcome: Outcome) -> char {
    match outcome {
        Outcome::Clean => '.',
        Outcome::Brief => 'b',
        Outcome::Escape => 'e',
        Outcome::Refused => 'r',
        Outcome::Overlap => 'O',
        Outcome::Kept => 'K',
    }
}
