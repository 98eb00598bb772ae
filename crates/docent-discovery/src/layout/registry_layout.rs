use std::fmt;

/// Layout of services and their instances in the tree. Clients find each other only in the same layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum RegistryLayout {
    /// As Curator's `ServiceDiscovery`: providers are nodes `base/name/id` that hold JSON. Consumers, which
    /// Curator does not know, are written alike below `base-consumers`.
    #[default]
    Curator,
    /// As Dubbo's ZooKeeper registry: nodes `base/name/providers/url` and `base/name/consumers/url` without
    /// data, where the URL is percent-encoded and its parameters are the fields of the payload.
    ///
    /// The URL is `scheme://address:port/name?parameters`; the scheme is the parameter `protocol` of the
    /// payload, or `dubbo`, and `consumer` for consumers. Parameters are text: a payload is an object of
    /// texts, numbers and booleans, and reads them back as texts, as a map or a struct of `String`. `id`,
    /// `weight`, `enabled` and `timestamp` stand for the fields of the instance. As the name of the node is
    /// all there is, an [update](crate::Registration::update) makes another node before it removes the old
    /// one. For the same reason two instances with the same id are two nodes, and none waits for the other.
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
