use docent_core::Error;
use std::fmt;
use std::str::FromStr;

/// Framework whose callers must find the instances of a registry in Curator's layout. Set by
/// [`RegistryBuilder::neighbour`](crate::RegistryBuilder::neighbour).
///
/// Both frameworks read the instances of a service as one list of payloads of a class that they define. An
/// instance with any other payload makes the whole list unreadable for them. With a neighbour, instances are
/// written with a payload of that class:
///
/// - The fields of the payload become texts in the payload's map `metadata`. A payload is an object of texts,
///   numbers and booleans, and is read back as texts, into a map or a struct of `String`.
/// - `metadata` has the key `instance_status`, which is `UP`, or `OUT_OF_SERVICE` while the instance is
///   disabled or drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Neighbour {
    /// Spring Cloud Zookeeper. Its root is `/services` by default. An instance without a URI template gets
    /// `{scheme}://{address}:{port}`. A weight is also written as `weight` in `metadata`.
    SpringCloud,
    /// Application-level discovery of Dubbo 3. Its root is `/services`, a service's name is that of an
    /// application, and an id is `host:port`.
    ///
    /// The payload has the field `interfaces`: a list of names, or one text with commas. Its fields
    /// `protocol` (`tri` by default), `group` and `version` apply to all of them. Before an instance is
    /// written, the application is added to `/dubbo/mapping/<interface>`, and the description of its
    /// interfaces is written to `/dubbo/metadata/<application>/<revision>`. These nodes stay, as those of
    /// Dubbo do. Dubbo's callers ignore the status of an instance.
    Dubbo3,
}

impl Neighbour {
    pub(super) const ALL: [Self; 2] = [Self::SpringCloud, Self::Dubbo3];

    /// Returns the class of the payloads.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::SpringCloud => "org.springframework.cloud.zookeeper.discovery.ZookeeperInstance",
            Self::Dubbo3 => "org.apache.dubbo.registry.zookeeper.ZookeeperInstance",
        }
    }
}

/// The name on a command line: `spring-cloud` or `dubbo3`.
impl fmt::Display for Neighbour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SpringCloud => "spring-cloud",
            Self::Dubbo3 => "dubbo3",
        })
    }
}

impl FromStr for Neighbour {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let named = Self::ALL.into_iter().find(|neighbour| neighbour.to_string() == text);
        named.ok_or_else(|| {
            let detail = format!("neighbour {text:?} must be \"spring-cloud\" or \"dubbo3\"");
            Error::invalid_input("neighbour", detail)
        })
    }
}
