//! Nodes that were read, and the look at them that says which more to read.

mod answer;
mod known;
#[expect(clippy::module_inception, reason = "the folder is about it")]
mod nodes;
mod place;
mod read;
mod view;

pub(crate) use answer::{Answer, Earlier};
pub(crate) use known::{Data, Folder, Known};
pub(crate) use nodes::Nodes;
pub(crate) use place::{Place, agree, join};
pub(crate) use read::Read;
pub(crate) use view::View;
