//! Typed nodes: values without a history, at paths of a template.

mod changes;
mod error;
mod model;
mod node;
mod path_template;

pub use changes::TypedNodeChanges;
pub use error::NodeError;
pub use model::NodeModel;
pub use node::TypedNode;
pub use path_template::PathTemplate;
