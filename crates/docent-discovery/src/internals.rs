//! Layout of a registry, for Docent's own crates. Nothing here is covered by any stability promise.

pub use crate::layout::decode as decoded;
pub use crate::neighbour::{MixedPayloads, mixed_payloads};
pub use crate::rules::disabling as disabling_rule;

use crate::layout::Placement;
use crate::neighbour::Checks;
use crate::rules::{DEFAULT_WEIGHT, RuleSet};
use crate::{Instance, RegistryLayout};
use docent_core::ParentKind;
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

fn registry(layout: RegistryLayout) -> Placement {
    Placement {
        base: String::new(),
        layout,
        neighbour: None,
        parents: ParentKind::default(),
        checks: Checks::default(),
    }
}
