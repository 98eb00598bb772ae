use super::follower::Followers;
use super::{Instances, Unreadable};
use crate::Instance;
use crate::balance::{Candidate, Load};
use crate::layout::Placement;
use crate::telemetry::ServiceGauges;
use docent_core::recipe::{Hooks, SharedMap, after, call_hook};
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
    /// Nodes that could be read as instances.
    nodes: BTreeMap<Arc<str>, Arc<Node>>,
    /// Their instances.
    all: SharedMap<Candidate<P>>,
    /// Those of them that are enabled and pass the filter.
    available: SharedMap<Candidate<P>>,
    unreadable: SharedMap<Unreadable>,
    /// Instances that are gone and shown for a while longer, with the end of that while.
    leaving: BTreeMap<Arc<str>, Instant>,
    /// Names that were told since everything began to be told anew.
    told: Option<BTreeSet<Arc<str>>>,
    /// Set when it was logged that the instances cannot be listed, until they are.
    is_refused: bool,
    is_loaded: bool,
    is_stale: bool,
}

impl<P> Default for ViewState<P> {
    fn default() -> Self {
        Self {
            nodes: BTreeMap::new(),
            all: SharedMap::new(),
            available: SharedMap::new(),
            unreadable: SharedMap::new(),
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
        self.state.nodes.get(name).is_some_and(|known| known.data == node.data)
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
        self.state.share();
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
                self.mark_unreadable(&name, error.to_string());
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
        let unreadable = self.state.unreadable.iter().map(|(name, _)| name);
        let known = self.state.nodes.keys().chain(unreadable);
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
        if self.is_known(&name, &node) {
            // Perhaps made anew, and still the same.
            self.state.unreadable.remove(&name);
            return self.state.is_written(name, node);
        }
        match self.read(&name, &node) {
            Ok((instance, passes)) => {
                self.state.unreadable.remove(&name);
                self.state.insert(name, node, instance, passes);
            }
            Err(reason) => {
                self.mark_unreadable(&name, reason);
                self.state.remove(&name);
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

    fn mark_unreadable(&mut self, name: &Arc<str>, reason: String) {
        let unreadable = Unreadable { id: name.to_string(), reason };
        if self.state.unreadable.get(name) != Some(&unreadable) {
            tracing::warn!(client = self.client, service = %self.service, id = %unreadable.id, reason = %unreadable.reason, "an instance cannot be read");
        }
        self.state.unreadable.insert(name, unreadable);
    }

    fn is_gone(&mut self, name: Arc<str>) {
        self.state.unreadable.remove(&name);
        if self.removal_grace.is_zero() || planted!(GraceForgotten) {
            self.state.remove(&name);
        } else if self.state.nodes.contains_key(&name) {
            let until = after(Instant::now(), self.removal_grace);
            self.state.leaving.entry(name).or_insert(until);
        }
    }

    /// Takes leave of those whose grace is over.
    fn part(&mut self) {
        let now = Instant::now();
        let is_over = |(_, until): &(&Arc<str>, &Instant)| **until <= now;
        let gone = self.state.leaving.iter().filter(is_over).map(|(name, _)| Arc::clone(name));
        for name in gone.collect::<Vec<_>>() {
            self.state.leaving.remove(&name);
            self.state.remove(&name);
        }
    }

    fn show(&self) {
        if planted!(BadNodeSpoilsList) && !self.state.unreadable.is_empty() {
            return;
        }
        let ViewState { all, available, unreadable, is_loaded, is_stale, .. } = &self.state;
        let shown = Arc::new(Instances {
            all: all.clone(),
            available: available.clone(),
            unreadable: unreadable.clone(),
            is_loaded: *is_loaded,
            is_stale: *is_stale,
        });
        self.gauges.show(shown.len(), shown.is_stale);
        let before = self.shown.send_replace(Arc::clone(&shown));
        tell_changes(&self.client, &self.service, &before, &shown);
        self.followers.tell(&self.service, &before, &shown);
    }
}

impl<P> ViewState<P> {
    /// Keeps one map where all instances are available, as they mostly are, in place of two that are equal.
    fn share(&mut self) {
        if self.available.len() == self.all.len() {
            self.available = self.all.clone();
        }
    }

    /// Takes in a node with the data that it had.
    fn is_written(&mut self, name: Arc<str>, node: Arc<Node>) {
        for map in [&mut self.all, &mut self.available] {
            if let Some(known) = map.get(&name).cloned() {
                map.insert(&name, Candidate { mzxid: node.stat.mzxid, ..known });
            }
        }
        self.nodes.insert(name, node);
    }

    fn insert(&mut self, name: Arc<str>, node: Arc<Node>, instance: Instance<P>, passes: bool) {
        let place = |instance: &Instance<P>| (instance.address.clone(), instance.port, instance.ssl_port);
        // Work in flight at the same place goes on to count.
        let load = match self.all.get(&name) {
            Some(known) if place(&known.instance) == place(&instance) => Arc::clone(&known.load),
            _ => Arc::<Load>::default(),
        };
        let is_available = passes && instance.enabled;
        let candidate =
            Candidate { key: Arc::clone(&name), instance: Arc::new(instance), mzxid: node.stat.mzxid, load };
        let available = match is_available {
            true => self.available.insert(&name, candidate.clone()),
            false => self.available.remove(&name),
        };
        let known = self.all.insert(&name, candidate);
        self.nodes.insert(name, node);
        // Once all maps agree: the drop of an instance may be code of the user's, and panic.
        drop((available, known));
    }

    fn remove(&mut self, name: &str) {
        self.nodes.remove(name);
        // As above.
        drop((self.available.remove(name), self.all.remove(name)));
    }
}

/// Logs in one line which instances came and are gone, and how many may be picked.
fn tell_changes<P>(client: &str, service: &str, before: &Instances<P>, now: &Instances<P>) {
    let (mut came, mut gone) = (Named::default(), Named::default());
    let is_same = |_: &Candidate<P>, _: &Candidate<P>| true;
    before.all.differences(&now.all, is_same, |id, before, _| match before {
        Some(_) => gone.add(id),
        None => came.add(id),
    });
    let available = now.len();
    if came.count + gone.count > 0 || available != before.len() {
        let (came, gone) = (came.words(), gone.words());
        tracing::info!(client, service, came, gone, available, "instances changed");
    }
}

/// A number of ids, the first few of which are named.
#[derive(Default)]
struct Named {
    first: Vec<Arc<str>>,
    count: usize,
}

impl Named {
    const MOST: usize = 3;

    fn add(&mut self, id: &Arc<str>) {
        self.count += 1;
        if self.first.len() < Self::MOST {
            self.first.push(Arc::clone(id));
        }
    }

    /// The ids in a few words; `None` when there are none.
    fn words(&self) -> Option<String> {
        let named = self.first.join(", ");
        match self.count {
            0 => None,
            more if more > Self::MOST => Some(format!("{named} and {} more", more - Self::MOST)),
            _ => Some(named),
        }
    }
}
