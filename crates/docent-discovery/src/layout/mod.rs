//! Paths of instances in the tree, and the data of their nodes.

mod dubbo;
mod percent;
mod placement;
mod registry_layout;
mod service_side;

pub(crate) use placement::Placement;
pub use registry_layout::RegistryLayout;
pub(crate) use service_side::ServiceSide;
