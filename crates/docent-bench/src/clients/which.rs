use clap::ValueEnum;
use std::fmt;

/// Client that takes part in the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Which {
    Docent,
    Bare,
    ZookeeperClient,
}

impl Which {
    pub(crate) const ALL: [Self; 3] = [Self::Docent, Self::Bare, Self::ZookeeperClient];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Docent => "docent",
            Self::Bare => "bare",
            Self::ZookeeperClient => "zookeeper-client",
        }
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
