//! Holds: what a recipe's guards are made of.

mod guard;
mod held;
#[expect(clippy::module_inception, reason = "the folder is about it")]
mod hold;
mod hold_set;
mod release;
mod run_while;
mod verify;

pub use guard::Guard;
pub use held::Held;
pub use hold::Hold;
pub use hold_set::HoldSet;
pub(crate) use release::gone;
use run_while::run_while;
use verify::verify;
