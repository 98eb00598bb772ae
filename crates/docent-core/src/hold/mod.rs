//! Holds: the building blocks of the guards of recipes.

mod guard;
mod held;
#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod hold;
mod hold_set;
mod release;
mod run_while;
mod verify;

pub use guard::Guard;
pub use held::Held;
pub use hold::Hold;
pub use hold_set::HoldSet;
pub(crate) use release::await_deletion;
use run_while::run_while;
use verify::verify;
