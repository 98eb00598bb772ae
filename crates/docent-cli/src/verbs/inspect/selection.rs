use super::owner::owner_of;
use crate::args::duration;
use clap::{Args, ValueEnum};
use docent::inspect::{Kind, Report};
use std::cmp::Reverse;
use std::time::Duration;

/// Which recipes to list, and in which order.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Selection {
    /// List only these kinds, by the names in the column KIND, such as mutex; repeat for several
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Vec<Kind>,

    /// List only recipes that a client holds, leads, claims from or joins whose OWNER or session contains
    /// this text
    #[arg(long, value_name = "TEXT")]
    owner: Option<String>,

    /// List only recipes that have had their owner, item or value for at least this long, such as 5m
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "watch")]
    older_than: Option<Duration>,

    /// Order: by path, by age with the oldest first, or by owner; recipes without age or owner come last
    #[arg(long, value_enum, value_name = "KEY", default_value_t)]
    sort: SortKey,
}

/// Order of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum SortKey {
    #[default]
    Path,
    Age,
    Owner,
}

/// Kinds that a walk finds.
const KINDS: [Kind; 15] = [
    Kind::Mutex,
    Kind::ReadWriteLock,
    Kind::Semaphore,
    Kind::Election,
    Kind::Queue,
    Kind::Service,
    Kind::Registry,
    Kind::Membership,
    Kind::Config,
    Kind::Value,
    Kind::Counter,
    Kind::Barrier,
    Kind::DoubleBarrier,
    Kind::TimedLease,
    Kind::Partition,
];

/// Parses the name of a kind.
fn kind(name: &str) -> Result<Kind, String> {
    let names = || KINDS.map(Kind::name).join(", ");
    KINDS.into_iter().find(|kind| kind.name() == name).ok_or_else(|| format!("must be one of {}", names()))
}

impl Selection {
    /// Returns the selected reports in the requested order.
    pub(super) fn of(&self, mut reports: Vec<Report>) -> Vec<Report> {
        reports.retain(|report| self.includes(report));
        match self.sort {
            // The walk lists the recipes level by level.
            SortKey::Path => reports.sort_by(|one, other| one.path.cmp(&other.path)),
            SortKey::Age => reports.sort_by_cached_key(|report| {
                let age = report.since().map(|since| since.age);
                (Reverse(age), report.path.clone())
            }),
            SortKey::Owner => reports.sort_by_cached_key(|report| {
                let owner = owner_of(report);
                (owner.is_none(), owner, report.path.clone())
            }),
        }
        reports
    }

    /// Returns true for a selected report.
    pub(super) fn includes(&self, report: &Report) -> bool {
        let is_kind = self.kind.is_empty() || self.kind.contains(&report.kind());
        let is_old = |limit| report.since().is_some_and(|since| since.age >= limit);
        let is_owned_by = |text: &String| {
            report.stakes().iter().filter(|stake| stake.role.is_owner()).any(|stake| {
                let session = stake.session.map(|session| format!("{session:#x}")).unwrap_or_default();
                stake.owner().contains(text) || session.contains(text)
            })
        };
        is_kind && self.older_than.is_none_or(is_old) && self.owner.as_ref().is_none_or(is_owned_by)
    }
}

#[cfg(test)]
mod tests {
    use super::kind;
    use docent::inspect::Kind;

    #[test]
    fn a_kind_has_the_name_that_the_list_shows() {
        assert_eq!(kind("read_write_lock"), Ok(Kind::ReadWriteLock));
        assert!(kind("lock").unwrap_err().contains("mutex, read_write_lock"));
    }
}
