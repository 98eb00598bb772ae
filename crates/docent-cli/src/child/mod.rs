//! Commands that verbs run: without a shell, in their own process group, with signals passed on, and dead
//! before the lease that they run under can end.
//!
//! [`run`] runs a command, and [`run_held`] runs one under a guard. Both start it through the `trampoline`,
//! which ties the command's life to docent's. A `Keeper` does the same for the processes that the command
//! starts, and kills all of them if docent is stalled until the lease is about to end. Which processes these
//! are, is the business of `Members`: the command's group, and under a guard everything that it has started.

mod abandoned;
mod alarm;
mod cgroup;
mod children;
mod command;
mod command_exit;
mod countdown;
mod deadline;
mod group;
mod held;
mod ignored;
mod interrupt;
mod job_control;
mod keeper;
mod keeper_process;
mod keeper_state;
mod lost_pipe;
mod members;
mod memory_file;
mod on_lost;
mod proc;
mod run;
mod running;
mod signals;
mod trampoline;

pub(crate) use children::collect_orphans_if_first;
pub(crate) use command::{ChildCommand, OWN_VARIABLES};
pub(crate) use command_exit::CommandExit;
pub(crate) use held::{Finished, run_held};
pub(crate) use interrupt::{end_as_typed, end_if_invoked};
pub(crate) use keeper_process::keep_if_invoked;
pub(crate) use on_lost::{KillPolicy, LossArguments};
pub(crate) use run::{is_stop, run, run_after, run_within};
pub(crate) use signals::{Signals, is_end};
pub(crate) use trampoline::become_command_if_invoked;
