//! Commands that verbs run: without a shell, in a process group of their own, with signals passed on, and
//! dead before the lease that they run under can end.
//!
//! [`run`] runs a command, and [`run_held`] one under a guard. Both start it through the `trampoline`, which
//! ties its life to ours; a `Keeper` does that for the processes that it starts, and kills all of them when
//! we stand still until the lease is about to end.

mod alarm;
mod command;
mod countdown;
mod deadline;
mod group;
mod held;
mod ignored;
mod interrupt;
mod job_control;
mod keeper;
mod keeper_process;
mod keeper_word;
mod left;
mod lost_pipe;
mod members;
mod on_lost;
mod proc;
mod run;
mod running;
mod signals;
mod trampoline;

pub(crate) use command::{ChildCommand, OWN_VARIABLES};
pub(crate) use held::{Finished, run_held};
pub(crate) use interrupt::{end_as_typed, end_if_asked};
pub(crate) use keeper_process::keep_if_asked;
pub(crate) use on_lost::{KillPolicy, LossArguments};
pub(crate) use run::{is_stop, run, run_after, run_within, was_not_run};
pub(crate) use signals::{Signals, is_end};
pub(crate) use trampoline::become_command_if_asked;
