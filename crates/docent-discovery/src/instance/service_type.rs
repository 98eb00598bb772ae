use std::fmt;

/// Kind of an instance's node, which decides how long the instance stays announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ServiceType {
    /// The instance is announced until the session that registered it ends.
    #[default]
    Dynamic,
    /// The instance stays until it is deregistered, independent of sessions. Curator's discovery server
    /// removes such instances when they are old.
    Static,
    /// The instance stays until it is deregistered, independent of sessions.
    Permanent,
    /// Like [`Dynamic`](Self::Dynamic), with a number that the servers append to the id. Such an instance can
    /// be read, but not registered: a node whose name changes whenever it is re-created cannot be kept or
    /// taken over.
    DynamicSequential,
}

/// Curator's names, in the order of Curator's numbers.
const NAMES: [(&str, ServiceType); 4] = [
    ("DYNAMIC", ServiceType::Dynamic),
    ("STATIC", ServiceType::Static),
    ("PERMANENT", ServiceType::Permanent),
    ("DYNAMIC_SEQUENTIAL", ServiceType::DynamicSequential),
];

impl ServiceType {
    /// Returns Curator's name, such as `DYNAMIC`.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// Returns the type with this name in Curator.
    pub(crate) fn named(text: &str) -> Option<Self> {
        NAMES.iter().find(|(name, _)| *name == text).map(|(_, kind)| *kind)
    }

    /// Returns the type with this number in Curator.
    pub(crate) fn numbered(number: i64) -> Option<Self> {
        let (_, kind) = NAMES.get(usize::try_from(number).ok()?)?;
        Some(*kind)
    }

    /// Returns true if the node is deleted with its session.
    pub(crate) fn is_dynamic(self) -> bool {
        matches!(self, Self::Dynamic | Self::DynamicSequential)
    }
}

/// Formats Curator's name, such as `DYNAMIC`.
impl fmt::Display for ServiceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
