//! Layout of a registry, for Docent's own crates. No promise is made for anything in here.

use crate::layout::Placement;
use crate::{Instance, RegistryLayout};

/// Reads the instance of `service` in the node called `name`.
///
/// # Errors
/// The fault of the data, without any of its values.
pub fn instance(layout: RegistryLayout, service: &str, name: &str, data: &[u8]) -> Result<Instance, String> {
    registry(layout).read(service, name, data)
}

/// Name of the service that a child of a registry is about.
pub fn service(layout: RegistryLayout, node: &str) -> String {
    registry(layout).service(node)
}

fn registry(layout: RegistryLayout) -> Placement {
    Placement { base: String::new(), layout }
}
