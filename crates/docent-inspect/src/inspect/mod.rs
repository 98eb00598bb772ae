//! The inspector: reads within limits, reports on paths, and walks.

mod builder;
mod clock;
mod inspector;
mod limits;
mod reader;
mod survey;
mod walk;

pub use builder::InspectorBuilder;
pub(crate) use inspector::Inspection;
pub use inspector::Inspector;
#[cfg(test)]
pub(crate) use inspector::inspect_nodes;
pub use limits::Limits;
pub use survey::Survey;
pub(crate) use walk::walk;
