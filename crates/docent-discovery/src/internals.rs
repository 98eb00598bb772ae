//! Layout of a registry, for Docent's own crates. No promise is made for anything in here.

use crate::layout::Placement;
use crate::{Instance, RegistryLayout};
use serde::de::DeserializeOwned;

/// Reads the instance of `service` in the node called `name`, with its payload as a `P`.
///
/// # Errors
/// The fault of the data, without any of its values.
pub fn instance<P: DeserializeOwned + 'static>(
    layout: RegistryLayout,
    service: &str,
    name: &str,
    data: &[u8],
) -> Result<Instance<P>, String> {
    registry(layout).read(service, name, data)
}

/// Name of the service that a child of a registry is about.
pub fn service(layout: RegistryLayout, node: &str) -> String {
    registry(layout).service(node)
}

fn registry(layout: RegistryLayout) -> Placement {
    Placement { base: String::new(), layout }
}
