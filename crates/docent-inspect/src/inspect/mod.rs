//! The inspector: reads within limits, reports about paths, and walks.

mod builder;
mod clock;
mod inspector;
mod limits;
mod reader;
mod survey;
mod walk;

pub use builder::InspectorBuilder;
pub use inspector::Inspector;
pub(crate) use inspector::Looked;
#[cfg(test)]
pub(crate) use inspector::look;
pub use limits::Limits;
pub use survey::Survey;
pub(crate) use walk::walk;
