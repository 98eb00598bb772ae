//! An instance that is kept announced.

mod handle;
mod instance_node;
mod loopback;
mod persistent;
mod status;
mod update;

pub use handle::Registration;
pub(crate) use instance_node::InstanceNode;
pub use status::RegistrationStatus;
