use super::side::Side;
use super::target::Target;

/// Work that two libraries do on one server, with the rows of the report.
#[derive(Debug)]
pub(super) struct Workload {
    /// Name for `--only`.
    pub(super) name: &'static str,
    /// Order to Docent, without the settings that all orders have.
    pub(super) subject: &'static str,
    /// Library to compare with, and its order.
    pub(super) peer: Option<(Side, &'static str)>,
    /// Order to kazoo, if kazoo has the recipe.
    pub(super) kazoo: Option<&'static str>,
    /// Order to bare sockets, if the report shows their bound.
    pub(super) bare: Option<&'static str>,
    /// Number of instances of the service that exists beforehand, or zero if there is none.
    pub(super) instances: usize,
    pub(super) rows: &'static [Row],
}

/// A row of a workload in the report.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) title: &'static str,
    /// Key of a figure of the answer, or `requests` of the counting run.
    pub(super) key: &'static str,
    pub(super) target: Option<Target>,
}

impl Workload {
    /// Returns true for figures of memory, which come from a process that has done no other work.
    pub(super) fn is_memory(&self) -> bool {
        self.subject.starts_with("memory-")
    }

    /// Returns the order to one of the sides.
    pub(super) fn order(&self, role: Role) -> Option<(Side, &'static str)> {
        match role {
            Role::Subject => Some((Side::Docent, self.subject)),
            Role::Peer => self.peer,
            Role::Kazoo => self.kazoo.map(|order| (Side::Kazoo, order)),
            Role::Bare => self.bare.map(|order| (Side::Bare, order)),
        }
    }
}

/// Role of a library in a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Role {
    Subject,
    Peer,
    Kazoo,
    Bare,
}

impl Role {
    pub(super) const ALL: [Self; 4] = [Self::Subject, Self::Peer, Self::Kazoo, Self::Bare];
}
