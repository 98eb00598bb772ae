use super::{Payload, Since, session};
use serde::Serialize;

/// Instances of one service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Service {
    /// Layout of the instances.
    pub layout: RegistryLayout,
    /// Name of the service.
    pub name: String,
    /// Instances in the order of their nodes' names.
    pub instances: Vec<Instance>,
    /// Names of the nodes in the folder `configurators` of Dubbo's layout, whose rules the weights and
    /// states of the instances take into account. Rules in other nodes, such as those of an application,
    /// are not read.
    pub rules: Vec<String>,
}

/// An instance of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Instance {
    /// Name of the node.
    pub node: String,
    /// State, as the node shows it.
    pub state: InstanceState,
    /// Id.
    pub id: Option<String>,
    /// Host name or IP address.
    pub address: Option<String>,
    /// Port.
    pub port: Option<u16>,
    /// TLS port.
    pub ssl_port: Option<u16>,
    /// Share relative to other instances.
    pub weight: Option<u32>,
    /// Kind of the node by Curator's name, such as `DYNAMIC`.
    pub service_type: Option<&'static str>,
    /// Time of the registration, by the clock of the instance, in milliseconds since 1970.
    pub registered_at_ms: Option<i64>,
    /// Time at which the node was created.
    #[serde(flatten)]
    pub since: Option<Since>,
    /// Session that owns the node, serialized as text such as `"0x10000a3f"`; `None` for an instance that
    /// does not depend on a session.
    #[serde(serialize_with = "session::text")]
    pub session: Option<i64>,
    /// Payload.
    pub payload: Option<Payload>,
    /// Why the instance cannot be read, without any of its values.
    pub fault: Option<String>,
}

impl Service {
    /// Returns the name of the node, in the folder `configurators` of Dubbo's layout, whose rule disables
    /// this instance and any other one with the same address, group and version. Returns `None` in
    /// Curator's layout, or if the instance has no address of its own with a port.
    pub fn disabling_rule(&self, instance: &Instance) -> Option<String> {
        let has_rules = self.layout == RegistryLayout::Dubbo;
        has_rules.then(|| docent_discovery::internals::disabling_rule(&self.name, &instance.node)).flatten()
    }

    /// Returns the [rules](Self::rules) as text, in the order of their nodes' names.
    pub fn rule_texts(&self) -> impl Iterator<Item = String> {
        self.rules
            .iter()
            .map(|name| docent_discovery::internals::decoded(name).unwrap_or_else(|| name.clone()))
    }
}

impl Instance {
    /// Returns the zone in the payload: the text `zone` there or in its `metadata` or `parameters`.
    pub fn zone(&self) -> Option<&str> {
        let payload = self.payload.as_ref()?.json.as_ref()?;
        let places = [Some(payload), payload.get("metadata"), payload.get("parameters")];
        places.into_iter().flatten().find_map(|place| place.get("zone")?.as_str())
    }
}

/// State of an instance. Serialized as `enabled`, `disabled` and `unreadable`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum InstanceState {
    /// The instance accepts work.
    Enabled,
    /// The instance exists but must not be given work.
    Disabled,
    /// The node cannot be read as an instance.
    Unreadable,
}

/// A folder of services.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Registry {
    /// Layout of the services.
    pub layout: RegistryLayout,
    /// Services in the order of their names.
    pub services: Vec<ServiceName>,
}

/// A service of a registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ServiceName {
    /// Name of the service's node.
    pub node: String,
    /// Name of the service. In Dubbo's layout, it is encoded in the name of the node.
    pub name: String,
    /// Number of instances; `None` if they were not listed.
    pub instances: Option<usize>,
}

/// Layout of services and their instances. Serialized as `curator` and `dubbo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RegistryLayout {
    /// Curator's layout, the default of Docent's registries: instances as JSON.
    Curator,
    /// Dubbo's layout: instances as URLs in the names of nodes.
    Dubbo,
}
