use serde::Serialize;
use std::fmt;

/// Library whose format a node has. Serialized in lower case, such as `docent`.
///
/// Docent uses the names of Curator's layouts. In these, a node counts as Docent's if it holds a
/// [`ClientIdentity`](docent_core::ClientIdentity), as Curator's if it is empty or holds an address, which is
/// Curator's default, and otherwise as [`DocentOrCurator`](Self::DocentOrCurator).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Writer {
    /// Docent.
    Docent,
    /// Curator.
    Curator,
    /// One of these two, whose formats are the same: ids of elections, instances, and contenders whose
    /// identity was overwritten or not read.
    DocentOrCurator,
    /// kazoo.
    Kazoo,
    /// The Go client, whose locks share one line with Curator's.
    GoZookeeper,
    /// Dubbo.
    Dubbo,
    /// ZooKeeper's own queue recipe, shared by Curator's and Docent's simple queues.
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
