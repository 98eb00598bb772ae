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
    /// Views of providers apply Dubbo's rules, its configurators, and never show an instance before they
    /// have read the rules once. Rules change the `weight` and the `enabled` of an instance as shown, not its
    /// node:
    ///
    /// - URLs `override://`, `absent://` and `empty://` in the names below `base/name/configurators`,
    /// - YAML in `base/config/dubbo/application.configurators`, for the instances with this `application`,
    /// - YAML in `base/config/dubbo/name:version:group.configurators`, for those with this version and group.
    ///
    /// A later one of these overrides an earlier one. In each, a rule for a host overrides one for `0.0.0.0`,
    /// and then the higher `priority` wins. `weight` and `disabled` are applied, and other parameters
    /// ignored. An instance without a weight has 100, as in Dubbo. Rules for particular consumers are not
    /// applied. An invalid rule is [listed](crate::Instances::unreadable) and otherwise ignored; the last
    /// valid content of a YAML node, of at most 64 KiB, stays in use. While rules cannot be read, the last
    /// known ones apply.
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
