//! The inspector: reads within limits, reports on paths, and walks.

mod below;
mod builder;
mod clock;
mod ephemerals;
mod inspector;
mod limits;
mod reader;
mod survey;
mod tree;
mod turns;
mod walk;

pub use builder::InspectorBuilder;
pub use inspector::Inspector;
#[cfg(test)]
pub(crate) use inspector::inspect_nodes;
pub use limits::Limits;
pub use survey::Survey;
pub(crate) use tree::Tree;
pub(crate) use walk::complete;
