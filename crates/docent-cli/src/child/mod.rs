//! Commands that verbs run: without a shell, in a process group of their own, with signals passed on, and
//! dead before the lease that they run under can end.
//!
//! [`run`] runs a command, and [`run_held`] one under a guard. Both start it through [`trampoline`], which
//! ties its life to ours.

mod command;
mod countdown;
mod deadline;
mod group;
mod held;
mod ignored;
mod job_control;
mod lost_pipe;
mod on_lost;
mod run;
mod running;
mod signals;
pub(crate) mod trampoline;

pub(crate) use command::ChildCommand;
pub(crate) use held::{Finished, run_held};
pub(crate) use on_lost::{KillPolicy, LossArguments};
pub(crate) use run::run;
pub(crate) use signals::Signals;
