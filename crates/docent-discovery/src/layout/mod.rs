//! Paths of instances in the tree, and the data of their nodes.

mod dubbo;
mod percent;
mod placement;
mod registry_layout;
mod url;

pub(crate) use dubbo::PROTOCOL_VERSION;
pub use percent::decode;
pub(crate) use percent::{encode, escape};
pub(crate) use placement::{Placement, ServiceSide};
pub use registry_layout::RegistryLayout;
pub(crate) use url::{Url, is_true, split_authority};
