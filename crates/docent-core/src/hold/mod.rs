//! Holds: the building blocks of the guards of recipes.

mod held;
#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod hold;
mod hold_set;

pub(crate) use held::await_deletion;
pub use held::{Guard, Held, Role};
pub use hold::Hold;
pub use hold_set::HoldSet;
