//! The election, its settings, and its work term after term.

mod builder;
#[expect(clippy::module_inception, reason = "the folder is about it")]
mod election;
mod layout;
mod observe;
mod run;

pub use builder::ElectionBuilder;
pub use election::Election;
pub use layout::ElectionLayout;
pub use run::ElectionRun;
