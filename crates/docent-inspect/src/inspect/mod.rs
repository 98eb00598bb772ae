//! The inspector: reads within limits, reports on paths, and walks.

mod below;
mod builder;
mod clock;
mod inspector;
mod limits;
mod reader;
mod survey;
mod tree;
mod turns;

pub use builder::InspectorBuilder;
pub use inspector::Inspector;
#[cfg(test)]
pub(crate) use inspector::inspect_nodes;
pub use limits::Limits;
pub(crate) use reader::complete;
pub use survey::Survey;
pub(crate) use tree::Tree;
