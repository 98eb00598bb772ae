use crate::event::{Announcing, AttemptId, ClientId, Event, EventKind, Listed, Viewing};
use crate::journal::ChangeKind;
use crate::run::Run;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Longest pause of a cache before it re-reads, after its link was lost several times.
pub(crate) const PAUSE: Duration = Duration::from_secs(11);

/// Recorded facts about one member of a folder.
#[derive(Debug)]
pub(crate) struct Offer<'a> {
    pub(crate) client: ClientId,
    pub(crate) path: &'a str,
    pub(crate) requests: Vec<(Duration, u64)>,
    pub(crate) written: Vec<(Duration, u64)>,
    pub(crate) leaving: Option<Duration>,
    pub(crate) left: Option<Duration>,
}

impl Offer<'_> {
    pub(crate) fn began(&self) -> Duration {
        self.requests[0].0
    }
}

/// Recorded facts about one viewer of a folder.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) client: ClientId,
    pub(crate) folder: &'a str,
    pub(crate) grace: Duration,
    pub(crate) opened: Duration,
    pub(crate) shown: Vec<(Duration, &'a [Listed])>,
    pub(crate) stopped: Option<Duration>,
}

/// Content of a folder's nodes, or of one node, after a transaction. The number of a node is `None` if its
/// data cannot be read.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) at: Duration,
    /// Numbers by path, each with the transaction that wrote it.
    pub(crate) nodes: BTreeMap<String, (i64, Option<u64>)>,
}

/// The members of folders, in the order in which they began.
pub(crate) fn offers(events: &[Event]) -> Vec<Offer<'_>> {
    let mut offers: BTreeMap<AttemptId, Offer<'_>> = BTreeMap::new();
    for event in events {
        let (EventKind::Announced(id, step), Some(client)) = (&event.kind, event.client) else { continue };
        if let Announcing::Requested { path, number } = step {
            let new =
                Offer { client, path, requests: Vec::new(), written: Vec::new(), leaving: None, left: None };
            offers.entry(*id).or_insert(new).requests.push((event.at, *number));
        } else if let Some(offer) = offers.get_mut(id) {
            match step {
                Announcing::Written(number) => offer.written.push((event.at, *number)),
                Announcing::Leaving => offer.leaving = offer.leaving.or(Some(event.at)),
                Announcing::Left => offer.left = Some(event.at),
                Announcing::Requested { .. } => {}
            }
        }
    }
    offers.into_values().collect()
}

/// The viewers, in the order in which they began.
pub(crate) fn views(events: &[Event]) -> Vec<View<'_>> {
    let mut views: BTreeMap<AttemptId, View<'_>> = BTreeMap::new();
    for event in events {
        let (EventKind::Viewed(id, step), Some(client)) = (&event.kind, event.client) else { continue };
        if let Viewing::Opened { folder, grace } = step {
            let view =
                View { client, folder, grace: *grace, opened: event.at, shown: Vec::new(), stopped: None };
            views.insert(*id, view);
        } else if let Some(view) = views.get_mut(id) {
            match step {
                Viewing::Shown(listed) => view.shown.push((event.at, listed)),
                _ => view.stopped = Some(event.at),
            }
        }
    }
    views.into_values().collect()
}

/// The content of the nodes for which `belongs` is true, after each transaction that changed it.
fn states(run: &Run, belongs: impl Fn(&str) -> bool) -> Vec<State> {
    let written: BTreeMap<(&str, i64), Option<u64>> =
        run.facts.written.iter().map(|write| ((&*write.path, write.zxid), write.number)).collect();
    let mut states = vec![State { at: Duration::ZERO, nodes: BTreeMap::new() }];
    for transaction in run.journal.chunk_by(|one, other| one.zxid == other.zxid) {
        let mut nodes = None;
        for change in transaction.iter().filter(|change| belongs(&change.path)) {
            let nodes = nodes
                .get_or_insert_with(|| states.last().map_or_else(BTreeMap::new, |last| last.nodes.clone()));
            match change.kind {
                ChangeKind::Deleted => drop(nodes.remove(&change.path)),
                ChangeKind::Created | ChangeKind::Set => {
                    let number = written.get(&(&*change.path, change.zxid)).copied().flatten();
                    nodes.insert(change.path.clone(), (change.zxid, number));
                }
                _ => {}
            }
        }
        if let Some(nodes) = nodes {
            states.push(State { at: transaction[0].at, nodes });
        }
    }
    states
}

/// The states of several folders or nodes, each replayed once.
pub(crate) fn histories<'a>(
    run: &Run,
    keys: impl Iterator<Item = &'a str>,
    belongs: impl Fn(&str, &str) -> bool,
) -> BTreeMap<&'a str, Vec<State>> {
    let keys: BTreeSet<&str> = keys.collect();
    keys.into_iter().map(|key| (key, states(run, |path| belongs(key, path)))).collect()
}

/// Index of the first state in which each node had each number.
pub(crate) fn firsts(states: &[State]) -> BTreeMap<(&str, Option<u64>), usize> {
    let mut firsts = BTreeMap::new();
    for (place, state) in states.iter().enumerate() {
        for (path, (_, number)) in &state.nodes {
            firsts.entry((&**path, *number)).or_insert(place);
        }
    }
    firsts
}

/// Returns true if `path` is a child of `folder`.
pub(crate) fn is_in(folder: &str, path: &str) -> bool {
    path != "/" && docent_proto::parent(path) == Some(folder)
}
