//! Workloads of the clients. A recipe's workload is one file or folder here and one row in `recipes`.

mod barrier;
mod calls;
mod config;
mod discovery;
mod election;
mod hold;
mod multilock;
mod mutex;
mod pace;
mod polls;
mod queue;
mod recipes;
mod record;
mod rwlock;
mod semaphore;
mod shown;
mod streams;
mod way;

use crate::controls::Controls;
use crate::setting::Setting;
use docent::Client;
use docent_checker::{Limit, Noted, Queued, Scribe, Written};
use docent_server::Transaction;
use fastrand::Rng;
use futures_util::future::LocalBoxFuture;
use std::collections::BTreeMap;
use std::fmt;
use tokio_util::sync::CancellationToken;

pub(crate) use recipes::{by_name, names, of_defect};

/// Surroundings of one client.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) client: Client,
    pub(crate) scribe: Scribe,
    pub(crate) setting: Setting,
    pub(crate) controls: Controls,
    /// Cancelled when nothing new may be begun.
    pub(crate) stop: CancellationToken,
}

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

    /// The queues, each with how often an item is handed out at most.
    fn queues(&self) -> BTreeMap<String, u32> {
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

    /// True when clients live until nothing new may be begun, unless a fault ends them.
    fn lasts(&self) -> bool {
        false
    }

    /// Works as one client until it is told to stop, or has done enough and may be closed. All that it began
    /// is over when it returns.
    fn run<'a>(&'a self, place: Place, rng: &'a mut Rng) -> LocalBoxFuture<'a, ()>;
}
