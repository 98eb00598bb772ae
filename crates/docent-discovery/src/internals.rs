//! Layout of a registry, for Docent's own crates. Nothing here is covered by any stability promise.

use crate::layout::Placement;
use crate::neighbour::Checks;
use crate::{Instance, RegistryLayout, neighbour};
use docent_core::{Client, Error, ParentKind};
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
    Placement {
        base: String::new(),
        layout,
        neighbour: None,
        parents: ParentKind::default(),
        checks: Checks::default(),
    }
}

/// Instances below `folder`, in Curator's layout, that readers of one Java class cannot read together.
#[derive(Debug)]
pub struct MixedPayloads {
    /// Id of an instance with a payload of the class.
    pub typed: String,
    /// The class.
    pub class: String,
    /// Id of an instance that readers of the class cannot read.
    pub other: String,
    /// The way to write payloads of the class.
    pub remedy: String,
}

/// Finds instances below `folder` that readers of one class cannot read together, among some of them.
///
/// # Errors
/// `Timeout`, `Closed`.
pub async fn mixed_payloads(client: &Client, folder: &str) -> Result<Option<MixedPayloads>, Error> {
    let mixed = neighbour::mixed(client, folder).await?;
    Ok(mixed.map(|mixed| {
        let remedy = mixed.remedy();
        MixedPayloads { typed: mixed.typed, class: mixed.class, other: mixed.other, remedy }
    }))
}
