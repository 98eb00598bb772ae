use std::fmt;

/// Kind of an instance's node, which decides how long it stays announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ServiceType {
    /// The session that registered it keeps it announced: it goes with that session.
    #[default]
    Dynamic,
    /// No session: the instance stays until it is deregistered. Curator's discovery server removes such
    /// instances when they are old.
    Static,
    /// No session: the instance stays until it is deregistered.
    Permanent,
    /// As [`Dynamic`](Self::Dynamic), with a number that the servers append to the id. It can be read, but
    /// not registered: a node whose name changes whenever it is made anew cannot be kept or taken over.
    DynamicSequential,
}

/// Curator's names, in the order of their numbers in Curator.
const NAMES: [(&str, ServiceType); 4] = [
    ("DYNAMIC", ServiceType::Dynamic),
    ("STATIC", ServiceType::Static),
    ("PERMANENT", ServiceType::Permanent),
    ("DYNAMIC_SEQUENTIAL", ServiceType::DynamicSequential),
];

impl ServiceType {
    /// As Curator writes it, such as `DYNAMIC`.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// The type by Curator's name for it.
    pub(crate) fn named(text: &str) -> Option<Self> {
        NAMES.iter().find(|(name, _)| *name == text).map(|(_, kind)| *kind)
    }

    /// The type by Curator's number for it.
    pub(crate) fn numbered(number: i64) -> Option<Self> {
        let (_, kind) = NAMES.get(usize::try_from(number).ok()?)?;
        Some(*kind)
    }

    /// True when its node goes with a session.
    pub(crate) fn is_dynamic(self) -> bool {
        matches!(self, Self::Dynamic | Self::DynamicSequential)
    }
}

/// Curator's name, such as `DYNAMIC`.
impl fmt::Display for ServiceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
