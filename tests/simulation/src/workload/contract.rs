use super::ClientCtx;
use crate::theme::Theme;
use docent_checker::{Limit, Noted, QueueRules, Queued, Written};
use docent_server::Transaction;
use fastrand::Rng;
use futures_util::future::LocalBoxFuture;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Work of a run's clients with a recipe.
pub(crate) trait Workload: fmt::Debug {
    /// Persistent nodes that have to be there.
    fn nodes(&self) -> Vec<String>;

    /// Below these no node may be left at the end but parents without children.
    fn emptied(&self) -> Vec<String>;

    /// How many permits there were where, as the journal tells.
    fn limits(&self, journal: &[Transaction]) -> Vec<Limit> {
        let _ = journal;
        Vec::new()
    }

    /// Terms that stood in the elections' own nodes, as the journal tells.
    fn noted(&self, journal: &[Transaction]) -> Vec<Noted> {
        let _ = journal;
        Vec::new()
    }

    /// The queues by their paths, each with its settings.
    fn queues(&self) -> BTreeMap<String, QueueRules> {
        BTreeMap::new()
    }

    /// Which items were in which nodes of queues, as the journal tells.
    fn queued(&self, journal: &[Transaction]) -> Vec<Queued> {
        let _ = journal;
        Vec::new()
    }

    /// Writes into nodes whose data is asked for, as the journal tells.
    fn written(&self, journal: &[Transaction]) -> Vec<Written> {
        let _ = journal;
        Vec::new()
    }

    /// Paths at which observers watch, besides the root.
    fn watched(&self) -> Vec<String> {
        self.nodes().into_iter().chain(self.emptied()).collect()
    }

    /// Number of observers in each run.
    fn observers(&self) -> u32 {
        0
    }

    /// Theme of all faults of its runs; `None` for what is drawn.
    fn theme(&self) -> Option<Theme> {
        None
    }

    /// Least session timeout of its runs.
    fn least_timeout(&self) -> Duration {
        Duration::ZERO
    }

    /// True when clients live until nothing new may be begun, unless a fault ends them.
    fn lasts(&self) -> bool {
        false
    }

    /// Works as one client until it is told to stop, or has done enough and may be closed. All that it began
    /// is over when it returns.
    fn run<'a>(&'a self, ctx: ClientCtx, rng: &'a mut Rng) -> LocalBoxFuture<'a, ()>;
}
