//! Processes that a command has started.

use super::children;
use super::proc::{Process, processes};
use docent::time::{BootClock, Clock};
use rustix::process::{Pid, Signal, getpid};
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// Variable by which the processes of a command are found.
pub(super) const VARIABLE: &str = "DOCENT_RUN";

/// Longest time for killing processes, which may create others meanwhile.
const KILLING: Duration = Duration::from_secs(1);

/// Value of [`VARIABLE`] in the environment of a command and of the processes that it starts. No two commands
/// of a machine have the same.
#[derive(Debug, Clone)]
pub(super) struct Mark(pub(super) String);

impl Mark {
    pub(super) fn new() -> Self {
        Self(format!("{}-{}", getpid().as_raw_nonzero(), BootClock.now().as_nanos()))
    }
}

/// Processes that belong to a command besides its leader: its group and, for a command with a [`Mark`], all
/// processes that the command has started, in whichever groups and sessions they are:
///
/// - those with the mark in their environment;
/// - the descendants of docent. Once docent [adopts orphans](children::adopt_orphans), that includes
///   processes whose parents have ended.
#[derive(Debug, Clone)]
pub(super) struct Members {
    group: i32,
    mark: Option<String>,
    /// Process whose descendants belong to the command, unless it has ended.
    docent: Option<i32>,
    /// Children of docent that do not belong to the command, because they are older.
    bystanders: Arc<HashSet<i32>>,
    /// The current keeper, which does not belong to the command.
    keeper: Arc<AtomicI32>,
}

/// Children of this process that exist before a command is started.
#[derive(Debug, Clone, Default)]
pub(super) struct Bystanders(Arc<HashSet<i32>>);

impl Bystanders {
    /// Lists the children of this process.
    ///
    /// # Errors
    /// Same as [`processes`].
    pub(super) fn list() -> io::Result<Self> {
        let own = getpid().as_raw_nonzero().get();
        let all = processes()?;
        let children = all.iter().filter(|process| process.parent == own).map(|process| process.number);
        Ok(Self(Arc::new(children.collect())))
    }

    /// Returns their numbers as an argument of a keeper.
    pub(super) fn argument(&self) -> String {
        let numbers: Vec<_> = self.0.iter().map(i32::to_string).collect();
        numbers.join(",")
    }

    /// Returns the bystanders in an argument.
    pub(super) fn from_argument(argument: &str) -> Self {
        Self(Arc::new(argument.split(',').filter_map(|number| number.parse().ok()).collect()))
    }
}

impl Members {
    /// Returns the processes of a command that this process has started.
    pub(super) fn of(
        group: Pid,
        mark: Option<&Mark>,
        bystanders: &Bystanders,
        keeper: &Arc<AtomicI32>,
    ) -> Self {
        Self {
            group: group.as_raw_nonzero().get(),
            mark: mark.map(variable),
            docent: mark.map(|_| getpid().as_raw_nonzero().get()),
            bystanders: Arc::clone(&bystanders.0),
            keeper: Arc::clone(keeper),
        }
    }

    /// Returns the processes of a command as this process, its keeper, sees them. `docent` is absent once it
    /// has ended.
    pub(super) fn seen_by_keeper(
        group: Pid,
        mark: Option<&Mark>,
        docent: Option<i32>,
        bystanders: &Bystanders,
    ) -> Self {
        Self {
            group: group.as_raw_nonzero().get(),
            mark: mark.map(variable),
            docent: docent.filter(|_| mark.is_some()),
            bystanders: Arc::clone(&bystanders.0),
            keeper: Arc::new(AtomicI32::new(getpid().as_raw_nonzero().get())),
        }
    }

    /// Returns the running members.
    ///
    /// # Errors
    /// Same as [`processes`].
    pub(super) fn list(&self) -> io::Result<Vec<Process>> {
        let all = processes()?;
        let parents: HashMap<i32, i32> = all.iter().map(|process| (process.number, process.parent)).collect();
        let begun =
            all.iter().find(|process| process.number == self.group).map_or(0, |leader| leader.started);
        let keeper = self.keeper.load(Ordering::Relaxed);
        let others = [Some(self.group), Some(keeper), self.docent];
        let is_marked = |process: &Process| {
            let mark = self.mark.as_deref().filter(|_| process.started >= begun);
            mark.map_or(Ok(false), |mark| process.has_variable(mark))
        };
        let mut members = Vec::new();
        for process in &all {
            let is_other = others.contains(&Some(process.number));
            let belongs = || process.group == self.group || self.is_descendant(process.number, &parents);
            if process.is_running && !is_other && (belongs() || is_marked(process)?) {
                members.push(*process);
            }
        }
        Ok(members)
    }

    fn is_descendant(&self, number: i32, parents: &HashMap<i32, i32>) -> bool {
        let Some(docent) = self.docent else { return false };
        let mut number = number;
        // The list may show a number that was used again as its own ancestor.
        for _ in 0..parents.len() {
            match parents.get(&number) {
                _ if self.bystanders.contains(&number) => return false,
                Some(parent) if *parent == docent => return true,
                Some(parent) => number = *parent,
                None => return false,
            }
        }
        false
    }

    /// Sends a signal to the members outside of the group, unless these are unknown.
    pub(super) fn signal_outsiders(&self, signal: Signal) {
        if self.mark.is_some() {
            let members = self.list().unwrap_or_default();
            members.iter().filter(|process| process.group != self.group).for_each(|it| it.signal(signal));
        }
    }

    /// Kills the members outside of the group, and those that they create meanwhile. A killed process creates
    /// no others, so nothing is missed once a list has nothing new. Kills none if the members are unknown.
    pub(super) fn kill_outsiders(&self) {
        if self.mark.is_none() {
            return;
        }
        let (begun, mut killed) = (Instant::now(), HashSet::new());
        while begun.elapsed() < KILLING {
            let Ok(mut news) = self.list() else { return };
            news.retain(|process| killed.insert((process.number, process.started)));
            if news.is_empty() {
                return;
            }
            news.into_iter().for_each(|process| process.signal(Signal::KILL));
        }
    }
}

fn variable(mark: &Mark) -> String {
    format!("{VARIABLE}={}", mark.0)
}

/// Prepares for a command whose processes must all be found.
pub(super) fn prepare() -> Mark {
    children::adopt_orphans();
    Mark::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keeper_knows_the_same_bystanders() {
        for numbers in [&[][..], &[7], &[7, 8]] {
            let bystanders = Bystanders(Arc::new(numbers.iter().copied().collect()));
            assert_eq!(Bystanders::from_argument(&bystanders.argument()).0, bystanders.0);
        }
    }

    #[test]
    fn descendants_are_found_through_any_number_of_parents() {
        let members = Members {
            group: 10,
            mark: None,
            docent: Some(5),
            bystanders: Arc::new(HashSet::from([7])),
            keeper: Arc::default(),
        };
        let parents =
            HashMap::from([(5, 1), (10, 5), (11, 10), (12, 11), (7, 5), (8, 7), (20, 1), (30, 31), (31, 30)]);
        for (number, expected) in
            [(10, true), (12, true), (7, false), (8, false), (20, false), (30, false), (99, false)]
        {
            assert_eq!(members.is_descendant(number, &parents), expected, "{number}");
        }
        assert!(!Members { docent: None, ..members }.is_descendant(12, &parents));
    }
}
