//! Holds: what a recipe's guards are made of.

mod guard;
#[expect(clippy::module_inception, reason = "the folder is about it")]
mod hold;
mod hold_set;
mod relay;
mod release;
mod run_while;
mod verify;

pub use guard::{AsHold, Guard, HoldRef, Run};
pub use hold::Hold;
pub use hold_set::HoldSet;
pub use relay::{Relay, TurnOver};
pub(crate) use release::gone;
pub(crate) use run_while::run_while;
pub(crate) use verify::verify;
