//! Workloads of the clients. A recipe's workload is one file here and one line in [`by_name`].

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
use std::rc::Rc;
use tokio_util::sync::CancellationToken;

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

/// The names of all workloads.
pub(crate) const ALL: [&str; 11] = [
    "mutex",
    "rwlock",
    "semaphore",
    "multilock",
    "barrier",
    "election",
    "reign",
    "queue",
    "discovery",
    "config",
    "streams",
];

/// Recipe whose workload shows a planted defect: the mutex for all that is common to all.
pub(crate) fn of_defect(name: &str) -> &'static str {
    match name {
        "reader-ignores-writer" | "downgrade-takes-new-place" => "rwlock",
        "stale-limit" => "semaphore",
        "part-of-set-kept" => "multilock",
        "ready-of-earlier-round" => "barrier",
        "delete-before-processing"
        | "no-node-is-claim"
        | "put-retried-on-absence"
        | "freed-claim-not-noticed"
        | "marker-without-version"
        | "claim-unchecked" => "queue",
        "work-goes-on-after-loss" | "out-after-session-end" | "takeover-delay-forgotten" => "election",
        "blind-delete" | "no-read-on-reconnect" | "bad-node-spoils-list" => "discovery",
        "older-after-newer" => "config",
        "folded-zxid" => "streams",
        _ => "mutex",
    }
}

/// The workload of a recipe.
pub(crate) fn by_name(name: &str, rng: &mut Rng) -> Option<Rc<dyn Workload>> {
    match name {
        "mutex" => Some(Rc::new(mutex::MutexWorkload::draw(rng))),
        "rwlock" => Some(Rc::new(rwlock::RwLockWorkload::draw(rng))),
        "semaphore" => Some(Rc::new(semaphore::SemaphoreWorkload::draw(rng))),
        "multilock" => Some(Rc::new(multilock::MultiLockWorkload::draw(rng))),
        "barrier" => Some(Rc::new(barrier::BarrierWorkload::draw(rng))),
        "election" => Some(Rc::new(election::ElectionWorkload::draw(rng))),
        "queue" => Some(Rc::new(queue::QueueWorkload::draw(rng))),
        "reign" => Some(Rc::new(election::ElectionWorkload::steady(rng))),
        "discovery" => Some(Rc::new(discovery::DiscoveryWorkload::draw(rng))),
        "config" => Some(Rc::new(config::ConfigWorkload::draw(rng))),
        "streams" => Some(Rc::new(streams::StreamsWorkload::draw(rng))),
        _ => None,
    }
}
