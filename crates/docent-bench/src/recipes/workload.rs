use super::side::Side;
use super::target::Target;

/// Work that two libraries do on one server, with what is told of it.
#[derive(Debug)]
pub(super) struct Workload {
    /// Name for `--only`.
    pub(super) name: &'static str,
    /// Order to Docent, without what all orders have.
    pub(super) ours: &'static str,
    /// Library it is compared with, and the order to that.
    pub(super) theirs: Option<(Side, &'static str)>,
    /// Order to kazoo, where it has the recipe.
    pub(super) kazoo: Option<&'static str>,
    /// Order to bare sockets, where it is told what bounds it.
    pub(super) bare: Option<&'static str>,
    /// Instances of the service that stands beforehand; zero for none.
    pub(super) instances: usize,
    pub(super) rows: &'static [Row],
}

/// One figure of a workload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) title: &'static str,
    /// Figure of the answers, or `requests` of the counting run.
    pub(super) key: &'static str,
    pub(super) target: Option<Target>,
}

impl Workload {
    /// Figures of memory come from a process that has done nothing else.
    pub(super) fn is_memory(&self) -> bool {
        self.ours.starts_with("memory-")
    }

    /// Order to one of the sides.
    pub(super) fn order(&self, role: Role) -> Option<(Side, &'static str)> {
        match role {
            Role::Ours => Some((Side::Docent, self.ours)),
            Role::Theirs => self.theirs,
            Role::Kazoo => self.kazoo.map(|order| (Side::Kazoo, order)),
            Role::Bare => self.bare.map(|order| (Side::Bare, order)),
        }
    }
}

/// Part that a library plays in a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Role {
    Ours,
    Theirs,
    Kazoo,
    Bare,
}

impl Role {
    pub(super) const ALL: [Self; 4] = [Self::Ours, Self::Theirs, Self::Kazoo, Self::Bare];
}
