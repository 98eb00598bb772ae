use std::fmt;

/// Library that takes part in the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Side {
    Docent,
    Curator,
    Kazoo,
    /// No library: bare sockets, as a bound of what a client can achieve.
    Bare,
}

impl Side {
    pub(super) const ALL: [Self; 4] = [Self::Docent, Self::Curator, Self::Kazoo, Self::Bare];
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Docent => "Docent",
            Self::Curator => "Curator",
            Self::Kazoo => "kazoo",
            Self::Bare => "bare sockets",
        })
    }
}
