use super::follower::Followers;
use super::{Instances, Unreadable};
use crate::Instance;
use crate::balance::{Candidate, Load};
use crate::layout::Placement;
use crate::telemetry::ServiceGauges;
use docent_core::recipe::{Hooks, after, call_hook};
use docent_core::{ChildrenEvent, ChildrenEvents, Error, Node, planted};
use futures_util::{FutureExt, StreamExt};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Filter of the instances that are shown.
pub(super) type Filter<P> = Arc<dyn Fn(&Instance<P>) -> bool + Send + Sync>;

/// Follows the children of a service's node, and shows the instances that they are.
pub(super) struct ViewTask<P> {
    pub(super) placement: Placement,
    pub(super) service: String,
    /// Label of the client.
    pub(super) client: String,
    pub(super) gauges: ServiceGauges,
    pub(super) filter: Option<Filter<P>>,
    pub(super) removal_grace: Duration,
    pub(super) shown: watch::Sender<Arc<Instances<P>>>,
    pub(super) followers: Followers<P>,
    pub(super) state: ViewState<P>,
}

/// Instances that the task knows.
pub(super) struct ViewState<P> {
    known: BTreeMap<Arc<str>, KnownInstance<P>>,
    unreadable: BTreeMap<Arc<str>, Unreadable>,
    /// Instances that are gone and shown for a while longer, with the end of that while.
    leaving: BTreeMap<Arc<str>, Instant>,
    /// Names that were told since everything began to be told anew.
    told: Option<BTreeSet<Arc<str>>>,
    /// Set when it was logged that the instances cannot be listed, until they are.
    is_refused: bool,
    is_loaded: bool,
    is_stale: bool,
}

struct KnownInstance<P> {
    node: Arc<Node>,
    candidate: Candidate<P>,
    /// The filter's answer.
    passes: bool,
}

impl<P> Default for ViewState<P> {
    fn default() -> Self {
        Self {
            known: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            leaving: BTreeMap::new(),
            told: None,
            is_refused: false,
            is_loaded: false,
            is_stale: true,
        }
    }
}

impl<P: DeserializeOwned + Send + Sync + 'static> ViewTask<P> {
    /// Until the client is closed, or nobody looks any more.
    pub(super) async fn run(
        mut self,
        mut events: ChildrenEvents,
        abandoned: CancellationToken,
        hooks: Hooks,
    ) {
        loop {
            let next_leaves = self.state.leaving.values().min().copied();
            let left = async {
                match next_leaves {
                    Some(instant) => tokio::time::sleep_until(instant).await,
                    None => std::future::pending().await,
                }
            };
            let mut news = Vec::new();
            tokio::select! {
                () = abandoned.cancelled() => return,
                event = events.next() => {
                    let Some(event) = event else { break };
                    news.push(event);
                    // Further events that are there already are shown together with it.
                    while let Some(Some(event)) = events.next().now_or_never() {
                        news.push(event);
                    }
                }
                () = left => {}
            }
            if !news.iter().any(|event| self.is_of_instances(event)) && next_leaves.is_none() {
                hooks.run_here(&mut self, |task| task.hear(news));
                continue;
            }
            match hooks.run(self, |task| task.hear(news)).await {
                Some(task) => self = task,
                None => return,
            }
        }
        self.state.is_stale = true;
        hooks.run_here(&mut self, |task| task.show());
    }

    /// True for an event at which an instance is read, or dropped: by code of the user's.
    fn is_of_instances(&self, event: &Result<ChildrenEvent, Error>) -> bool {
        match event {
            Ok(ChildrenEvent::Added(name, node) | ChildrenEvent::Updated(name, node)) => {
                !self.is_known(name, node)
            }
            Ok(ChildrenEvent::Delete(_)) => true,
            _ => false,
        }
    }

    fn is_known(&self, name: &str, node: &Node) -> bool {
        self.state.known.get(name).is_some_and(|known| known.node.data == node.data)
    }

    fn hear(&mut self, news: Vec<Result<ChildrenEvent, Error>>) {
        let service = self.service.clone();
        for event in news {
            // Payloads have drops of their own, and a panic there takes no other event with it.
            let _ = call_hook("drop of an instance", &service, || self.apply(event));
        }
        let _ = call_hook("drop of an instance", &service, || {
            self.settle();
            self.part();
        });
        if self.state.is_loaded {
            self.show();
        }
    }

    fn apply(&mut self, event: Result<ChildrenEvent, Error>) {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                if !std::mem::replace(&mut self.state.is_refused, true) {
                    tracing::warn!(client = self.client, service = %self.service, %error, "the instances of a service cannot be listed");
                }
                self.state.is_stale = true;
                return;
            }
        };
        match event {
            ChildrenEvent::Init => self.state.told = Some(BTreeSet::new()),
            ChildrenEvent::Added(name, node) | ChildrenEvent::Updated(name, node) => self.has(name, node),
            ChildrenEvent::Delete(name) => self.is_gone(name),
            ChildrenEvent::Unreadable(name, error) => {
                if let Some(told) = &mut self.state.told {
                    told.insert(Arc::clone(&name));
                }
                self.mark_unreadable(name, error.to_string());
            }
            ChildrenEvent::Ready => {
                self.settle();
                (self.state.is_stale, self.state.is_refused) = (false, false);
            }
            ChildrenEvent::Gap => self.state.is_stale = true,
            _ => {}
        }
    }

    /// Everything that is told anew has been told: it is without a pause in between.
    fn settle(&mut self) {
        let Some(told) = self.state.told.take() else { return };
        let is_missing = |name: &&Arc<str>| !told.contains(*name);
        let known = self.state.known.keys().chain(self.state.unreadable.keys());
        let missing: Vec<_> = known.filter(is_missing).cloned().collect();
        for name in missing {
            self.is_gone(name);
        }
        self.state.is_loaded = true;
    }

    fn has(&mut self, name: Arc<str>, node: Arc<Node>) {
        if let Some(told) = &mut self.state.told {
            told.insert(Arc::clone(&name));
        }
        self.state.leaving.remove(&name);
        if self.is_known(&name, &node)
            && let Some(known) = self.state.known.get_mut(&name)
        {
            // Perhaps made anew, and still the same.
            known.candidate.mzxid = node.stat.mzxid;
            known.node = node;
            self.state.unreadable.remove(&name);
            return;
        }
        match self.read(&name, &node) {
            Ok((instance, passes)) => self.insert(name, node, instance, passes),
            Err(reason) => {
                self.mark_unreadable(Arc::clone(&name), reason);
                self.state.known.remove(&name);
            }
        }
    }

    /// The instance of a node, and whether it passes the filter.
    ///
    /// # Errors
    /// The fault of the data, or the hook that panicked.
    fn read(&self, name: &str, node: &Node) -> Result<(Instance<P>, bool), String> {
        let read = || self.placement.read::<P>(&self.service, name, &node.data);
        let instance = call_hook("decoder of payloads", name, read).map_err(|panic| panic.to_string())??;
        let passes = match &self.filter {
            Some(filter) => call_hook("filter", name, || filter(&instance)),
            None => Ok(true),
        };
        Ok((instance, passes.map_err(|panic| panic.to_string())?))
    }

    fn insert(&mut self, name: Arc<str>, node: Arc<Node>, instance: Instance<P>, passes: bool) {
        self.state.unreadable.remove(&name);
        let place = |instance: &Instance<P>| (instance.address.clone(), instance.port, instance.ssl_port);
        // Work in flight at the same place goes on to count.
        let load = match self.state.known.get(&name) {
            Some(known) if place(&known.candidate.instance) == place(&instance) => {
                Arc::clone(&known.candidate.load)
            }
            _ => Arc::<Load>::default(),
        };
        let candidate =
            Candidate { key: Arc::clone(&name), instance: Arc::new(instance), mzxid: node.stat.mzxid, load };
        self.state.known.insert(name, KnownInstance { node, candidate, passes });
    }

    fn mark_unreadable(&mut self, name: Arc<str>, reason: String) {
        let unreadable = Unreadable { id: name.to_string(), reason };
        if self.state.unreadable.get(&name) != Some(&unreadable) {
            tracing::warn!(client = self.client, service = %self.service, id = %unreadable.id, reason = %unreadable.reason, "an instance cannot be read");
        }
        self.state.unreadable.insert(name, unreadable);
    }

    fn is_gone(&mut self, name: Arc<str>) {
        self.state.unreadable.remove(&name);
        if self.removal_grace.is_zero() {
            self.state.known.remove(&name);
        } else if self.state.known.contains_key(&name) {
            let until = after(Instant::now(), self.removal_grace);
            self.state.leaving.entry(name).or_insert(until);
        }
    }

    /// Takes leave of those whose grace is over.
    fn part(&mut self) {
        let now = Instant::now();
        let ViewState { leaving, known, .. } = &mut self.state;
        leaving.retain(|name, until| {
            let stays = *until > now;
            if !stays {
                known.remove(name);
            }
            stays
        });
    }

    fn show(&self) {
        if planted!(BadNodeSpoilsList) && !self.state.unreadable.is_empty() {
            return;
        }
        let ViewState { known, unreadable, is_loaded, is_stale, .. } = &self.state;
        let all: BTreeMap<_, _> =
            known.iter().map(|(name, known)| (Arc::clone(name), known.candidate.clone())).collect();
        let is_available = |known: &&KnownInstance<P>| known.passes && known.candidate.instance.enabled;
        let available: Vec<_> =
            known.values().filter(is_available).map(|known| known.candidate.clone()).collect();
        let (is_loaded, is_stale) = (*is_loaded, *is_stale);
        self.gauges.show(available.len(), is_stale);
        tell_changes(&self.client, &self.service, &self.shown.borrow(), &all, available.len());
        let shown = Instances { all, available, unreadable: unreadable.clone(), is_loaded, is_stale };
        let shown = Arc::new(shown);
        self.shown.send_replace(Arc::clone(&shown));
        self.followers.tell(&self.service, &shown);
    }
}

/// Logs in one line which instances came and are gone, and how many may be picked.
fn tell_changes<P>(
    client: &str,
    service: &str,
    before: &Instances<P>,
    now: &BTreeMap<Arc<str>, Candidate<P>>,
    available: usize,
) {
    let (came, gone) = (missing(now, &before.all), missing(&before.all, now));
    if came.is_some() || gone.is_some() || available != before.available.len() {
        tracing::info!(client, service, came, gone, available, "instances changed");
    }
}

/// The first few ids of `these` that `those` lack; `None` when there are none.
fn missing<P>(these: &BTreeMap<Arc<str>, P>, those: &BTreeMap<Arc<str>, P>) -> Option<String> {
    const NAMED: usize = 3;
    let missing: Vec<&str> = these.keys().filter(|id| !those.contains_key(*id)).map(|id| &**id).collect();
    let named = missing.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    match missing.len() {
        0 => None,
        more if more > NAMED => Some(format!("{named} and {} more", more - NAMED)),
        _ => Some(named),
    }
}
