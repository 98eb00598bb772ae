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
    /// Its instances, in the order of their nodes' names.
    pub instances: Vec<Instance>,
}

/// One instance of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Instance {
    /// Name of the node.
    pub node: String,
    /// Its state, as its node shows it.
    pub state: InstanceState,
    /// Its id.
    pub id: Option<String>,
    /// Host name or IP address.
    pub address: Option<String>,
    /// The port.
    pub port: Option<u16>,
    /// The port for TLS.
    pub ssl_port: Option<u16>,
    /// Its share among others.
    pub weight: Option<u32>,
    /// Kind of its node by Curator's name, such as `DYNAMIC`.
    pub service_type: Option<&'static str>,
    /// Time of the registration, by the clock of the instance, in milliseconds since 1970.
    pub registered_at_ms: Option<i64>,
    /// Time at which its node was made.
    #[serde(flatten)]
    pub since: Option<Since>,
    /// The session that owns the node, serialized as text such as `"0x10000a3f"`; `None` for an instance that
    /// stays without one.
    #[serde(serialize_with = "session::text")]
    pub session: Option<i64>,
    /// Its payload.
    pub payload: Option<Payload>,
    /// Reason for which it cannot be read, without any of its values.
    pub fault: Option<String>,
}

/// State of an instance. Serialized as `enabled`, `disabled` and `unreadable`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum InstanceState {
    /// It takes work.
    Enabled,
    /// It is there and must be given no work.
    Disabled,
    /// Its node cannot be read as an instance.
    Unreadable,
}

/// A folder of services.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Registry {
    /// Layout of the services.
    pub layout: RegistryLayout,
    /// The services, in the order of their names.
    pub services: Vec<ServiceName>,
}

/// One service of a registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ServiceName {
    /// Name of the service.
    pub name: String,
    /// Number of its instances; `None` where they were not listed.
    pub instances: Option<usize>,
}

/// Layout of services and their instances. Serialized as `curator` and `dubbo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RegistryLayout {
    /// Curator's, which Docent's registries have by default: instances as JSON.
    Curator,
    /// Dubbo's: instances as URLs in the names of nodes.
    Dubbo,
}
