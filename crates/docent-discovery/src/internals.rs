//! Layout of a registry, for Docent's own crates. Nothing here is covered by any stability promise.

use crate::layout::Placement;
use crate::{Instance, RegistryLayout};
use serde::de::DeserializeOwned;

/// Decodes the instance of `service` in the node named `name`, with its payload as a `P`.
///
/// # Errors
/// What is wrong with the data, without any of its values.
pub fn instance<P: DeserializeOwned + 'static>(
    layout: RegistryLayout,
    service: &str,
    name: &str,
    data: &[u8],
) -> Result<Instance<P>, String> {
    registry(layout).read(service, name, data)
}

/// Returns the name of the service that a child of a registry represents.
pub fn service(layout: RegistryLayout, node: &str) -> String {
    registry(layout).service(node)
}

fn registry(layout: RegistryLayout) -> Placement {
    Placement { base: String::new(), layout }
}
