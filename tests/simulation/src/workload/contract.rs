use super::ClientCtx;
use crate::theme::Theme;
use docent_checker::{Limit, Noted, QueueRules, Queued, Written};
use docent_server::Transaction;
use fastrand::Rng;
use futures_util::future::LocalBoxFuture;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// What the clients of a run do with a recipe.
pub(crate) trait Workload: fmt::Debug {
    /// Persistent nodes that must exist.
    fn nodes(&self) -> Vec<String>;

    /// Paths below which no node may be left at the end, except parents without children.
    fn emptied(&self) -> Vec<String>;

    /// Numbers of permits at the paths of semaphores, according to the journal.
    fn limits(&self, journal: &[Transaction]) -> Vec<Limit> {
        let _ = journal;
        Vec::new()
    }

    /// Terms in the elections' own nodes, according to the journal.
    fn noted(&self, journal: &[Transaction]) -> Vec<Noted> {
        let _ = journal;
        Vec::new()
    }

    /// Settings of each queue, by its path.
    fn queues(&self) -> BTreeMap<String, QueueRules> {
        BTreeMap::new()
    }

    /// Items in the nodes of queues, according to the journal.
    fn queued(&self, journal: &[Transaction]) -> Vec<Queued> {
        let _ = journal;
        Vec::new()
    }

    /// Writes to nodes whose data is checked, according to the journal.
    fn written(&self, journal: &[Transaction]) -> Vec<Written> {
        let _ = journal;
        Vec::new()
    }

    /// Paths that observers watch, in addition to the root.
    fn watched(&self) -> Vec<String> {
        self.nodes().into_iter().chain(self.emptied()).collect()
    }

    /// Number of observers in each run.
    fn observers(&self) -> u32 {
        0
    }

    /// Theme of all faults of the recipe's runs; `None` if the faults are drawn.
    fn theme(&self) -> Option<Theme> {
        None
    }

    /// Minimum session timeout of the recipe's runs.
    fn least_timeout(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns true if clients live until nothing new may begin, unless a fault ends them.
    fn lasts(&self) -> bool {
        false
    }

    /// Works as one client until it must stop, or has done enough and may be closed. Everything that it began
    /// has ended when it returns.
    fn run<'a>(&'a self, ctx: ClientCtx, rng: &'a mut Rng) -> LocalBoxFuture<'a, ()>;
}
