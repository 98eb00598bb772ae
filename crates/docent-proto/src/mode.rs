/// Mode of a new node: how long it lives, and whether its name gets a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CreateMode {
    /// Until it is deleted.
    #[default]
    Persistent,
    /// Until it is deleted or the session that created it ends. It cannot have children.
    Ephemeral,
    /// As `Persistent`; the parent's counter is appended to the name as ten digits.
    PersistentSequential,
    /// As `Ephemeral`; the parent's counter is appended to the name as ten digits.
    EphemeralSequential,
    /// Until it is deleted; the server deletes it some time after its last child went.
    Container,
    /// Until it is deleted or had neither a change nor a child for a given time. Off by default on servers.
    PersistentTtl,
    /// As `PersistentTtl`; the parent's counter is appended to the name as ten digits.
    PersistentSequentialTtl,
}

impl CreateMode {
    const ALL: [Self; 7] = [
        Self::Persistent,
        Self::Ephemeral,
        Self::PersistentSequential,
        Self::EphemeralSequential,
        Self::Container,
        Self::PersistentTtl,
        Self::PersistentSequentialTtl,
    ];

    /// The number that stands for the mode on the wire.
    pub fn flags(self) -> i32 {
        self as i32
    }

    /// The mode that `flags` stands for.
    pub fn from_flags(flags: i32) -> Option<Self> {
        Self::ALL.get(usize::try_from(flags).ok()?).copied()
    }

    /// True when the parent's counter is appended to the name.
    pub fn is_sequential(self) -> bool {
        matches!(self, Self::PersistentSequential | Self::EphemeralSequential | Self::PersistentSequentialTtl)
    }

    /// True when the node goes with its session.
    pub fn is_ephemeral(self) -> bool {
        matches!(self, Self::Ephemeral | Self::EphemeralSequential)
    }

    /// True when the node goes after a given time without a change or child.
    pub fn has_ttl(self) -> bool {
        matches!(self, Self::PersistentTtl | Self::PersistentSequentialTtl)
    }
}
