use serde::Serialize;
use std::fmt;

/// Library whose format a node has. Serialized in lower case, such as `docent`.
///
/// Docent writes the names of Curator's layouts: there a node counts as Docent's when it holds a
/// [`ClientIdentity`](docent_core::ClientIdentity), as Curator's when it holds nothing or an address, as
/// Curator's do by default, and as [`DocentOrCurator`](Self::DocentOrCurator) else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Writer {
    /// Docent.
    Docent,
    /// Curator.
    Curator,
    /// One of these two, which have the same format: ids of elections, instances, and contenders whose
    /// identity was overwritten or not read.
    DocentOrCurator,
    /// kazoo.
    Kazoo,
    /// The Go client, whose locks stand in one line with Curator's.
    GoZookeeper,
    /// Dubbo.
    Dubbo,
    /// ZooKeeper's own queue recipe, which Curator's simple queue and Docent's share.
    Contrib,
}

impl fmt::Display for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Docent => "docent",
            Self::Curator => "curator",
            Self::DocentOrCurator => "docent or curator",
            Self::Kazoo => "kazoo",
            Self::GoZookeeper => "go_zookeeper",
            Self::Dubbo => "dubbo",
            Self::Contrib => "contrib",
        })
    }
}
