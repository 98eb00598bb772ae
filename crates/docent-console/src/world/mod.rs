//! What the console knows: the reports of one survey, and what has happened since it began.

mod change;
mod findings;
mod follow;
mod owner;
mod past;
mod servers;
#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod world;

pub(crate) use findings::FindingKind;
pub(crate) use follow::follow;
pub(crate) use owner::{owner_of, short_text, shortened};
pub(crate) use past::{Sample, Term};
pub(crate) use world::{Link, Rules, Totals, World, state_name};
