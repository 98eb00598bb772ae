//! Other frameworks that discover instances in Curator's layout, and require payloads of one Java class.

mod class;
mod companions;
mod dubbo3;
mod kind;
mod preparation;
mod readers;
mod wrapped;

pub(crate) use class::is_out_of_service;
pub use kind::Neighbour;
pub(crate) use preparation::{Checks, preparation};
pub use readers::{MixedPayloads, mixed_payloads};
pub(crate) use wrapped::{unwrapped, wrapped};
