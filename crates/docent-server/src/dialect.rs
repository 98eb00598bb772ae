use docent_proto::{CreateKind, MultiOp, OpCode, Request};
use std::fmt;
use std::str::FromStr;

/// The build date, which clients expect here, is fixed, so that builds are reproducible.
macro_rules! version {
    ($version:literal) => {
        concat!($version, "-docent-", env!("CARGO_PKG_VERSION"), ", built on 1970-01-01 00:00 UTC")
    };
}

/// Version of ZooKeeper, or of a server that speaks its protocol, as which a server answers its clients:
/// which operations it knows, how it refuses the others, and whether a session survives the loss of its link.
///
/// ```
/// # use docent_server::{Dialect, Server};
/// let builder = Server::builder().dialect(Dialect::Keeper2025);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Dialect {
    /// ZooKeeper 3.8: every operation. A server answers an operation that it does not know with
    /// [`UNIMPLEMENTED`](docent_proto::Code::UNIMPLEMENTED) and closes the link.
    #[default]
    ZooKeeper,
    /// ZooKeeper 3.5, without the operations of 3.6 and 3.7: persistent watches, the multi of reads, lists of
    /// ephemeral nodes, counts of descendants, and `whoAmI`.
    ZooKeeper35,
    /// ZooKeeper 3.4, also without `create2`, containers, nodes with a time to live, reconfiguration, and the
    /// removal of watches.
    ZooKeeper34,
    /// ClickHouse Keeper of 2025, without `create2`, containers, nodes with a time to live, SASL, lists of
    /// ephemeral nodes, counts of descendants, and `whoAmI`.
    ///
    /// Keeper closes the link without an answer if it does not know an operation. It restores no session: a
    /// link that asks for a session gets a new one, and the old one expires at its timeout.
    Keeper2025,
    /// ClickHouse Keeper of 2026: like [`Keeper2025`](Self::Keeper2025), with `create2`, containers and nodes
    /// with a time to live. In its stats, a container has the owner `i64::MIN`.
    Keeper2026,
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Self; 5] =
        [Self::ZooKeeper, Self::ZooKeeper35, Self::ZooKeeper34, Self::Keeper2025, Self::Keeper2026];

    /// Returns whether the servers know the operation.
    pub fn knows(self, op: OpCode) -> bool {
        use OpCode::{
            AddWatch, CheckWatches, Create2, CreateContainer, CreateTtl, GetAllChildrenNumber, GetEphemerals,
            MultiRead, Reconfig, RemoveWatches, Sasl, SetWatches2, WhoAmI,
        };
        let since_3_6 = [MultiRead, AddWatch, SetWatches2, GetEphemerals, GetAllChildrenNumber, WhoAmI];
        let since_3_5 = [Create2, CreateContainer, CreateTtl, Reconfig, CheckWatches, RemoveWatches];
        let never_in_keeper = [Sasl, GetEphemerals, GetAllChildrenNumber, WhoAmI];
        match self {
            Self::ZooKeeper => true,
            Self::ZooKeeper35 => !since_3_6.contains(&op),
            Self::ZooKeeper34 => !since_3_6.contains(&op) && !since_3_5.contains(&op),
            Self::Keeper2026 => !never_in_keeper.contains(&op),
            Self::Keeper2025 => {
                !never_in_keeper.contains(&op) && ![Create2, CreateContainer, CreateTtl].contains(&op)
            }
        }
    }

    /// Returns whether the servers know every kind of create within the request.
    pub(crate) fn knows_all_of(self, request: &Request) -> bool {
        let Request::Multi(ops) = request else { return true };
        ops.iter().all(|op| match op {
            MultiOp::Create(create) => self.knows(match create.kind {
                CreateKind::Plain => OpCode::Create,
                CreateKind::WithStat => OpCode::Create2,
                CreateKind::Container => OpCode::CreateContainer,
                CreateKind::Ttl(_) => OpCode::CreateTtl,
            }),
            _ => true,
        })
    }

    /// Returns whether this is ClickHouse Keeper.
    pub(crate) fn is_keeper(self) -> bool {
        matches!(self, Self::Keeper2025 | Self::Keeper2026)
    }

    /// Returns whether a session survives the loss of its link.
    pub fn restores_sessions(self) -> bool {
        !self.is_keeper()
    }

    /// Returns the version in the answers to four-letter words, with a suffix that identifies this server.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::ZooKeeper => version!("3.8.0"),
            Self::ZooKeeper35 => version!("3.5.10"),
            Self::ZooKeeper34 => version!("3.4.14"),
            Self::Keeper2025 => concat!("v25.8.1.1-docent-", env!("CARGO_PKG_VERSION")),
            Self::Keeper2026 => concat!("v26.6.1.1-docent-", env!("CARGO_PKG_VERSION")),
        }
    }

    /// Returns the name of the software in the answers to four-letter words.
    pub(crate) fn software(self) -> &'static str {
        if self.is_keeper() { "ClickHouse Keeper" } else { "Zookeeper" }
    }

    fn name(self) -> &'static str {
        match self {
            Self::ZooKeeper => "zookeeper",
            Self::ZooKeeper35 => "zookeeper-3.5",
            Self::ZooKeeper34 => "zookeeper-3.4",
            Self::Keeper2025 => "keeper-2025",
            Self::Keeper2026 => "keeper-2026",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No dialect has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("dialect {0:?} must be one of zookeeper, zookeeper-3.5, zookeeper-3.4, keeper-2025, keeper-2026")]
pub struct UnknownDialect(String);

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, UnknownDialect> {
        let found = Self::ALL.into_iter().find(|dialect| dialect.name() == name);
        found.ok_or_else(|| UnknownDialect(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialect_is_parsed_from_the_name_that_it_prints() {
        for dialect in Dialect::ALL {
            assert_eq!(dialect.to_string().parse(), Ok(dialect));
        }
        assert!("3.4".parse::<Dialect>().unwrap_err().to_string().contains("zookeeper-3.4"));
    }
}
