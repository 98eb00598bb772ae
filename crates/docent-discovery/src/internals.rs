//! Layout of a registry, for Docent's own crates. Nothing here is covered by any stability promise.

use crate::layout::Placement;
use crate::neighbour::Checks;
use crate::rules::{self, DEFAULT_WEIGHT, RuleSet};
use crate::{Instance, RegistryLayout, layout, neighbour};
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

/// Rules in the folder `configurators` of a service, in Dubbo's layout.
#[derive(Debug)]
pub struct FolderRules(RuleSet);

impl FolderRules {
    /// Reads the rules from the names of the folder's nodes. Invalid rules have no effect.
    pub fn read<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self(RuleSet::of_folder(names.into_iter()))
    }

    /// Changes the instance of `service` in the node named `node` as the rules say.
    pub fn apply<P>(&self, service: &str, node: &str, instance: &mut Instance<P>) {
        let Some(overlay) = self.0.overlay(service, node) else { return };
        let has_weight = instance.weight.is_some();
        overlay.apply(instance);
        // The default is not a weight that a rule or the instance has set.
        instance.weight = instance.weight.filter(|weight| has_weight || *weight != DEFAULT_WEIGHT);
    }
}

/// Returns the name of the node, in the folder `configurators` of a service in Dubbo's layout, that
/// disables the instance in the node named `node`. Returns `None` if the instance has no address of its own
/// with a port.
pub fn disabling_rule(service: &str, node: &str) -> Option<String> {
    rules::disabling(service, node)
}

/// Returns the text that the name of a node in Dubbo's layout encodes.
pub fn decoded(name: &str) -> Option<String> {
    layout::decode(name)
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
