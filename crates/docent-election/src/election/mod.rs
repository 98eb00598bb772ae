//! The election, its builder, and the loop that works term after term.

mod builder;
#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod election;
mod layout;
mod observe;
mod run;
mod work_result;

pub use builder::ElectionBuilder;
pub use election::Election;
pub use layout::ElectionLayout;
pub use run::ElectionRun;
pub use work_result::WorkResult;
