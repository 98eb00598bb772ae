//! One running copy of a service, and its encoding in a node.

mod check;
mod decode;
mod encode;
mod payload;
mod record;
mod service_type;
mod uri_spec;
mod weight;

pub(crate) use check::{bracketed, is_loopback, segment as check_segment};
pub(crate) use decode::{decode, read_choice};
pub(crate) use encode::{EncodedInstance, encoded};
pub(crate) use payload::read as read_payload;
pub use record::Instance;
pub use service_type::ServiceType;
pub use uri_spec::{UriPart, UriSpec};
pub(crate) use weight::read as read_weight;
