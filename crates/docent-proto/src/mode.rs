/// Mode of a new node: its lifetime, and whether a number is appended to its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CreateMode {
    /// The node exists until it is deleted.
    #[default]
    Persistent,
    /// The node exists until it is deleted or the session that created it ends. It cannot have children.
    Ephemeral,
    /// Like `Persistent`; the parent's counter is appended to the name as ten digits.
    PersistentSequential,
    /// Like `Ephemeral`; the parent's counter is appended to the name as ten digits.
    EphemeralSequential,
    /// The node exists until it is deleted. The server deletes it some time after the deletion of its last
    /// child.
    Container,
    /// The node exists until it is deleted, or until it has had neither a change nor a child for a given
    /// time. Servers disable this mode by default.
    PersistentTtl,
    /// Like `PersistentTtl`; the parent's counter is appended to the name as ten digits.
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

    /// Returns the number of the mode on the wire.
    pub fn flags(self) -> i32 {
        self as i32
    }

    /// Returns the mode with the number `flags`.
    pub fn from_flags(flags: i32) -> Option<Self> {
        Self::ALL.get(usize::try_from(flags).ok()?).copied()
    }

    /// Returns whether the parent's counter is appended to the name.
    pub fn is_sequential(self) -> bool {
        matches!(self, Self::PersistentSequential | Self::EphemeralSequential | Self::PersistentSequentialTtl)
    }

    /// Returns whether the node is deleted with its session.
    pub fn is_ephemeral(self) -> bool {
        matches!(self, Self::Ephemeral | Self::EphemeralSequential)
    }

    /// Returns whether the node is deleted after a given time without a change or child.
    pub fn has_ttl(self) -> bool {
        matches!(self, Self::PersistentTtl | Self::PersistentSequentialTtl)
    }
}
