//! Processes that a command has started.

use super::cgroup::{self, Cgroup};
use super::children;
use super::proc::{Process, each_process};
use docent::time::{BootClock, Clock};
use rustix::process::{Pid, Signal, getpid};
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// Variable by which the processes of a command are found.
pub(super) const VARIABLE: &str = "DOCENT_RUN";

/// Longest time for killing processes, which may create others meanwhile.
const KILLING: Duration = Duration::from_secs(1);

/// Number of looks without a new process after which all are killed, as far as one can see: a process that
/// is created and ends between two steps of a look is missed.
const LOOKS_IN_VAIN: u32 = 2;

/// Value of [`VARIABLE`] in the environment of a command and of the processes that it starts. No two commands
/// of a machine have the same.
///
/// Where the system allows that, the command also has a [`Cgroup`], which no process can leave on its own.
#[derive(Debug, Clone)]
pub(super) struct Mark {
    pub(super) value: String,
    pub(super) cgroup: Option<Arc<Cgroup>>,
}

impl Mark {
    fn new(cgroup: Option<Cgroup>) -> Self {
        let value = format!("{}-{}", getpid().as_raw_nonzero(), BootClock.now().as_nanos());
        Self { value, cgroup: cgroup.map(Arc::new) }
    }

    /// Returns the folder of the command's control group.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.cgroup.as_deref().map(Cgroup::folder)
    }
}

/// Processes that belong to a command besides its leader: its group and, for a command with a [`Mark`], all
/// processes that the command has started, in whichever groups and sessions they are:
///
/// - those in the control group of the mark;
/// - those with the mark in their environment;
/// - the descendants of docent. Once docent [adopts orphans](children::adopt_orphans), that includes
///   processes whose parents have ended.
#[derive(Debug, Clone)]
pub(super) struct Members {
    group: i32,
    mark: Option<String>,
    cgroup: Option<Arc<Cgroup>>,
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
    /// Same as [`each_process`].
    pub(super) fn list() -> io::Result<Self> {
        let own = getpid().as_raw_nonzero().get();
        let mut children = HashSet::new();
        each_process(|process| {
            children.extend((process.parent == own).then_some(process.number));
            Ok(())
        })?;
        Ok(Self(Arc::new(children)))
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

/// What a command has left.
#[derive(Debug)]
pub(super) struct Rest {
    /// Running processes besides the leader.
    pub(super) members: Vec<Process>,
    /// Children of docent that have ended.
    pub(super) ended: Vec<i32>,
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
            cgroup: mark.and_then(|mark| mark.cgroup.clone()),
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
            cgroup: mark.and_then(|mark| mark.cgroup.clone()),
            docent: docent.filter(|_| mark.is_some()),
            bystanders: Arc::clone(&bystanders.0),
            keeper: Arc::new(AtomicI32::new(getpid().as_raw_nonzero().get())),
        }
    }

    /// Returns the running members, and children of docent that have ended.
    ///
    /// If there is neither, no member was running when this method was called: each member descends from a
    /// child of docent, which remains in the list of processes until docent collects its end.
    ///
    /// # Errors
    /// Same as [`each_process`].
    pub(super) fn list(&self) -> io::Result<Rest> {
        let mut members = Vec::new();
        let ended = self.visit(|member| members.push(member))?;
        Ok(Rest { members, ended })
    }

    /// Calls `visit` for each running member as soon as it is found, and returns the children of docent that
    /// have ended.
    fn visit(&self, mut visit: impl FnMut(Process)) -> io::Result<Vec<i32>> {
        let begun = Process::read(self.group)?.map_or(0, |leader| leader.started);
        let keeper = self.keeper.load(Ordering::Relaxed);
        let others = [Some(self.group), Some(keeper), self.docent];
        let is_other = |number: i32| others.contains(&Some(number));
        let in_cgroup = self.cgroup.as_ref().map_or_else(|| Ok(HashSet::new()), |it| it.processes())?;
        let is_marked = |process: &Process| {
            let mark = self.mark.as_deref().filter(|_| process.started >= begun);
            mark.map_or(Ok(false), |mark| process.has_variable(mark))
        };
        let is_child = |process: &Process| {
            Some(process.parent) == self.docent && !self.bystanders.contains(&process.number)
        };
        let (mut parents, mut undecided, mut ended) = (HashMap::new(), Vec::new(), Vec::new());
        each_process(|process| {
            parents.insert(process.number, process.parent);
            match () {
                () if !process.is_running => {
                    ended.extend(is_child(&process).then_some(process.number));
                }
                () if is_other(process.number) => {}
                () if process.group == self.group
                    || is_child(&process)
                    || in_cgroup.contains(&process.number)
                    || is_marked(&process)? =>
                {
                    visit(process);
                }
                () => undecided.push(process),
            }
            Ok(())
        })?;
        undecided.retain(|process| self.is_descendant(process.number, &parents));
        // `/proc` may hide the processes of other users.
        let hidden = in_cgroup.iter().filter(|number| !parents.contains_key(number) && !is_other(**number));
        let hidden = hidden.filter_map(|number| Process::unlisted(*number));
        undecided.into_iter().chain(hidden).for_each(visit);
        Ok(ended)
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
            let members = self.list().map(|rest| rest.members).unwrap_or_default();
            members.iter().filter(|process| process.group != self.group).for_each(|it| it.signal(signal));
        }
    }

    /// Kills the members outside of the group, and those that they create meanwhile, unless the members are
    /// unknown. Returns true if there were any.
    pub(super) fn kill_outsiders(&self) -> bool {
        if self.mark.is_none() {
            return false;
        }
        self.cgroup.iter().for_each(|cgroup| cgroup.kill());
        let (begun, mut killed, mut in_vain) = (Instant::now(), HashSet::new(), 0);
        while in_vain < LOOKS_IN_VAIN && begun.elapsed() < KILLING {
            let before = killed.len();
            // Each process is killed as soon as it is found, before it can create another one and end.
            let visited = self.visit(|process| {
                if killed.insert((process.number, process.started)) {
                    process.signal(Signal::KILL);
                }
            });
            in_vain = if killed.len() > before { 0 } else { in_vain + 1 };
            if visited.is_err() {
                break;
            }
        }
        !killed.is_empty()
    }
}

fn variable(mark: &Mark) -> String {
    format!("{VARIABLE}={}", mark.value)
}

/// Prepares for a command whose processes must all be found.
pub(super) fn prepare() -> Mark {
    children::adopt_orphans();
    cgroup::clear_left();
    let cgroup = Cgroup::create().inspect_err(|error| {
        // Event: The command has no control group: docent's own is not delegated, or there is none.
        // Action: None. To keep daemons that clear their environment from outliving a killed docent, run it
        // in a delegated group, such as a systemd service with `Delegate=yes`.
        // Without client: the command is not part of a client.
        tracing::debug!(
            target: "docent::command",
            %error,
            "cannot create a control group; finding the processes of the command by their ancestors and variables"
        );
    });
    Mark::new(cgroup.ok())
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
            cgroup: None,
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
