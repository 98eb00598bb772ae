//! An instance that is kept announced.

mod announcer;
mod handle;
mod instance_node;
mod persistent;
mod status;
mod update;

pub(crate) use announcer::Announcer;
pub use handle::Registration;
use instance_node::InstanceNode;
pub use status::RegistrationStatus;
