//! Nodes that were read, and the view that records which further reads are needed.

mod known;
#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod nodes;
mod place;
mod read;
mod view;

pub(crate) use known::{Answer, Data, Folder, Known};
pub(crate) use nodes::Nodes;
pub(crate) use place::{Place, agree, join};
pub(crate) use read::Read;
pub(crate) use view::View;
