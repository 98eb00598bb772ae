use std::fmt;

/// Layout of services and their instances in the tree. Clients find each other only if they use the same
/// layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum RegistryLayout {
    /// Layout of Curator's `ServiceDiscovery`: providers are nodes `base/name/id` that contain JSON.
    /// Consumers, which Curator does not have, are written in the same form below `base-consumers`.
    #[default]
    Curator,
    /// Layout of Dubbo's ZooKeeper registry: nodes `base/name/providers/url` and `base/name/consumers/url`
    /// without data. The URL is percent-encoded, and its parameters are the fields of the payload.
    ///
    /// The URL is `scheme://address:port/name?parameters`. The scheme is the parameter `protocol` of the
    /// payload, or `dubbo`; it is `consumer` for consumers. Parameters are text: a payload is an object of
    /// strings, numbers and booleans, and is read back as strings, into a map or a struct of `String`. `id`,
    /// `weight`, `enabled` and `timestamp` hold the fields of the instance. Parameters that strict consumers
    /// require are added unless the payload has them: `application` (the name of the instance), `category`,
    /// `dubbo`, `interface`, `methods` (`*`), `revision` (the `version`) and `side`; for consumers also
    /// `check`. The folders `configurators` and `routers`, which consumers watch, are created as well.
    ///
    /// All data is in the name of the node. Therefore an [update](crate::Registration::update) creates
    /// another node before it removes the old one. For the same reason, two instances with the same id are
    /// two nodes, and neither waits for the other.
    Dubbo,
}

impl fmt::Display for RegistryLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Curator => "curator",
            Self::Dubbo => "dubbo",
        })
    }
}
