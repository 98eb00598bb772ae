use super::follower::Followers;
use super::{Instances, Unreadable};
use crate::Instance;
use crate::balance::{Candidate, Load};
use crate::layout::Placement;
use crate::rules::FollowedRules;
use crate::telemetry::ServiceGauges;
use docent_core::recipe::{Hooks, after, call_hook};
use docent_core::{ChildrenEvent, ChildrenEvents, Error, Node, planted};
use futures_core::Stream;
use futures_util::{FutureExt, StreamExt};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Filter of the shown instances.
pub(super) type Filter<P> = Arc<dyn Fn(&Instance<P>) -> bool + Send + Sync>;

/// Follows the children of a service's node, and shows the instances that they represent.
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
    /// Rules that change the instances; `None` in a layout without rules.
    pub(super) rules: Option<FollowedRules>,
    pub(super) state: ViewState<P>,
}

/// Instances that the task knows.
pub(super) struct ViewState<P> {
    /// Instances of the nodes, without the rules that are not applied.
    instances: Instances<P>,
    /// Nodes that could be read as instances.
    nodes: BTreeMap<Arc<str>, Arc<Node>>,
    /// Instances whose nodes were deleted but that are still shown, with the time when that ends.
    leaving: BTreeMap<Arc<str>, Instant>,
    /// Names reported since the cache started a complete listing.
    listed: Option<BTreeSet<Arc<str>>>,
    /// Set once it was logged that the instances cannot be listed, until they can be listed again.
    is_refused: bool,
}

impl<P> Default for ViewState<P> {
    fn default() -> Self {
        Self {
            instances: Instances::none(),
            nodes: BTreeMap::new(),
            leaving: BTreeMap::new(),
            listed: None,
            is_refused: false,
        }
    }
}

impl<P: DeserializeOwned + Send + Sync + 'static> ViewTask<P> {
    /// Runs until the client is closed or the view is dropped.
    pub(super) async fn run(
        mut self,
        mut events: ChildrenEvents,
        mut rule_changes: impl Stream<Item = ()> + Unpin,
        abandoned: CancellationToken,
        hooks: Hooks,
    ) {
        loop {
            let next_leaves = self.state.leaving.values().min().copied();
            let leave_due = async {
                match next_leaves {
                    Some(instant) => tokio::time::sleep_until(instant).await,
                    None => std::future::pending().await,
                }
            };
            let (mut batch, mut has_new_rules) = (Vec::new(), false);
            tokio::select! {
                () = abandoned.cancelled() => return,
                event = events.next() => {
                    let Some(event) = event else { break };
                    batch.push(event);
                    // Events that are already available are shown together with this one.
                    while let Some(Some(event)) = events.next().now_or_never() {
                        batch.push(event);
                    }
                }
                Some(()) = rule_changes.next() => {
                    has_new_rules = true;
                    while let Some(Some(())) = rule_changes.next().now_or_never() {}
                }
                () = leave_due => {}
            }
            let task = if has_new_rules {
                hooks.run(self, Self::apply_rules).await
            } else if next_leaves.is_some() || batch.iter().any(|event| self.is_of_instances(event)) {
                hooks.run(self, |task| task.apply_events(batch)).await
            } else {
                hooks.run_inline(&mut self, |task| task.apply_events(batch));
                continue;
            };
            match task {
                Some(task) => self = task,
                None => return,
            }
        }
        self.state.instances.is_stale = true;
        hooks.run_inline(&mut self, |task| task.show());
    }

    /// Returns true for an event that reads or drops an instance, which runs user code.
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

    fn apply_events(&mut self, batch: Vec<Result<ChildrenEvent, Error>>) {
        let service = self.service.clone();
        for event in batch {
            // Payloads may run user code when dropped. A panic there must not affect other events.
            let _ = call_hook("drop of an instance", &service, || self.apply(event));
        }
        let _ = call_hook("drop of an instance", &service, || {
            self.end_listing();
            self.remove_expired();
        });
        self.show_if_loaded();
    }

    /// Applies changes of the rules, and decodes those instances again that the rules now change differently.
    fn apply_rules(&mut self) {
        let Some(rules) = &mut self.rules else { return };
        let (before, service) = (rules.refresh(), self.service.clone());
        let now = &rules.set;
        let is_changed = |name: &str| before.overlay(&service, name) != now.overlay(&service, name);
        let changed = self.state.nodes.iter().filter(|(name, _)| is_changed(name));
        let changed: Vec<_> = changed.map(|(name, node)| (Arc::clone(name), Arc::clone(node))).collect();
        for (name, node) in changed {
            let _ = call_hook("drop of an instance", &service, || self.read_node(name, node));
        }
        self.show_if_loaded();
    }

    fn show_if_loaded(&mut self) {
        self.state.share();
        if self.state.instances.is_loaded && self.rules.as_ref().is_none_or(|rules| rules.are_known) {
            self.show();
        }
    }

    fn apply(&mut self, event: Result<ChildrenEvent, Error>) {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                if !std::mem::replace(&mut self.state.is_refused, true) {
                    // Event: The servers refuse to list the instances of a followed service. The last known
                    // instances stay in use.
                    // Action: Grant the client READ on the service's node.
                    tracing::warn!(target: "docent::discovery", client = %self.client, service = %self.service, %error, "cannot list the instances of a service; retrying");
                }
                self.state.instances.is_stale = true;
                return;
            }
        };
        match event {
            ChildrenEvent::Init => self.state.listed = Some(BTreeSet::new()),
            ChildrenEvent::Added(name, node) | ChildrenEvent::Updated(name, node) => {
                self.handle_node(name, node);
            }
            ChildrenEvent::Delete(name) => self.handle_deletion(name),
            ChildrenEvent::Unreadable(name, error) => {
                if let Some(listed) = &mut self.state.listed {
                    listed.insert(Arc::clone(&name));
                }
                self.mark_unreadable(&name, error.to_string());
            }
            ChildrenEvent::Ready => {
                self.end_listing();
                (self.state.instances.is_stale, self.state.is_refused) = (false, false);
            }
            ChildrenEvent::Gap => self.state.instances.is_stale = true,
            _ => {}
        }
    }

    /// Ends a complete listing, which is reported without a pause in between.
    fn end_listing(&mut self) {
        let Some(listed) = self.state.listed.take() else { return };
        let is_missing = |name: &&Arc<str>| !listed.contains(*name);
        let unreadable = self.state.instances.unreadable.iter().map(|(name, _)| name);
        let known = self.state.nodes.keys().chain(unreadable);
        let missing: Vec<_> = known.filter(is_missing).cloned().collect();
        for name in missing {
            self.handle_deletion(name);
        }
        self.state.instances.is_loaded = true;
    }

    fn handle_node(&mut self, name: Arc<str>, node: Arc<Node>) {
        if let Some(listed) = &mut self.state.listed {
            listed.insert(Arc::clone(&name));
        }
        self.state.leaving.remove(&name);
        if self.is_known(&name, &node) {
            // The node may have been re-created with the same data.
            self.state.instances.unreadable.remove(&name);
            return self.state.record_write(name, node);
        }
        self.read_node(name, node);
    }

    fn read_node(&mut self, name: Arc<str>, node: Arc<Node>) {
        match self.read(&name, &node) {
            Ok((instance, passes)) => {
                self.state.instances.unreadable.remove(&name);
                self.state.insert(name, node, instance, passes);
            }
            Err(reason) => {
                self.mark_unreadable(&name, reason);
                self.state.remove(&name);
            }
        }
    }

    /// Decodes the instance of a node, and returns whether it passes the filter.
    ///
    /// # Errors
    /// What is wrong with the data, or the hook that panicked.
    fn read(&self, name: &str, node: &Node) -> Result<(Instance<P>, bool), String> {
        let read = || self.placement.read::<P>(&self.service, name, &node.data);
        let mut instance =
            call_hook("decoder of payloads", name, read).map_err(|panic| panic.to_string())??;
        if let Some(overlay) = self.rules.as_ref().and_then(|rules| rules.set.overlay(&self.service, name)) {
            overlay.apply(&mut instance);
        }
        let passes = match &self.filter {
            Some(filter) => call_hook("filter", name, || filter(&instance)),
            None => Ok(true),
        };
        Ok((instance, passes.map_err(|panic| panic.to_string())?))
    }

    fn mark_unreadable(&mut self, name: &Arc<str>, reason: String) {
        let unreadable = Unreadable { id: name.to_string(), reason };
        if self.state.instances.unreadable.get(name) != Some(&unreadable) {
            // Event: The node of an instance has invalid data, may not be read, or made a hook of the
            // application panic.
            // Action: Check the program that registered the instance, and the permissions of its node.
            tracing::warn!(target: "docent::discovery", client = %self.client, service = %self.service, id = %unreadable.id, reason = %unreadable.reason, "cannot read an instance; ignoring it");
        }
        self.state.instances.unreadable.insert(name, unreadable);
    }

    fn handle_deletion(&mut self, name: Arc<str>) {
        self.state.instances.unreadable.remove(&name);
        if self.removal_grace.is_zero() || planted!(GraceForgotten) {
            self.state.remove(&name);
        } else if self.state.nodes.contains_key(&name) {
            let until = after(Instant::now(), self.removal_grace);
            self.state.leaving.entry(name).or_insert(until);
        }
    }

    /// Removes the instances whose grace period is over.
    fn remove_expired(&mut self) {
        let now = Instant::now();
        let is_expired = |(_, until): &(&Arc<str>, &Instant)| **until <= now;
        let gone = self.state.leaving.iter().filter(is_expired).map(|(name, _)| Arc::clone(name));
        for name in gone.collect::<Vec<_>>() {
            self.state.leaving.remove(&name);
            self.state.remove(&name);
        }
    }

    fn show(&self) {
        if planted!(BadNodeSpoilsList) && !self.state.instances.unreadable.is_empty() {
            return;
        }
        let mut shown = self.state.instances.clone();
        if let Some(rules) = &self.rules {
            for (path, rule) in &rules.rejected {
                shown.unreadable.insert(path, rule.clone());
            }
            shown.is_stale |= rules.are_stale;
        }
        let shown = Arc::new(shown);
        self.gauges.show(shown.len(), shown.is_stale);
        let before = self.shown.send_replace(Arc::clone(&shown));
        log_changes(&self.client, &self.service, &before, &shown);
        self.followers.notify(&self.service, &before, &shown);
    }
}

impl<P> ViewState<P> {
    /// Keeps one map instead of two equal ones if all instances are available, which is the usual case.
    fn share(&mut self) {
        let Instances { all, available, .. } = &mut self.instances;
        if available.len() == all.len() {
            *available = all.clone();
        }
    }

    /// Records a new version of a node with unchanged data.
    fn record_write(&mut self, name: Arc<str>, node: Arc<Node>) {
        for map in [&mut self.instances.all, &mut self.instances.available] {
            if let Some(known) = map.get(&name).cloned() {
                map.insert(&name, Candidate { mzxid: node.stat.mzxid, ..known });
            }
        }
        self.nodes.insert(name, node);
    }

    fn insert(&mut self, name: Arc<str>, node: Arc<Node>, instance: Instance<P>, passes: bool) {
        let Instances { all, available, .. } = &mut self.instances;
        let place = |instance: &Instance<P>| (instance.address.clone(), instance.port, instance.ssl_port);
        // Work in flight at the same address still counts.
        let load = match all.get(&name) {
            Some(known) if place(&known.instance) == place(&instance) => Arc::clone(&known.load),
            _ => Arc::<Load>::default(),
        };
        let is_available = passes && instance.enabled;
        let candidate =
            Candidate { key: Arc::clone(&name), instance: Arc::new(instance), mzxid: node.stat.mzxid, load };
        let was_available = match is_available {
            true => available.insert(&name, candidate.clone()),
            false => available.remove(&name),
        };
        let known = all.insert(&name, candidate);
        self.nodes.insert(name, node);
        // Drop after all maps agree: dropping an instance may run user code and panic.
        drop((was_available, known));
    }

    fn remove(&mut self, name: &str) {
        self.nodes.remove(name);
        // Drop after all maps agree, as in `insert`.
        drop((self.instances.available.remove(name), self.instances.all.remove(name)));
    }
}

/// Logs in one line which instances were added and removed, and how many may be picked.
fn log_changes<P>(client: &str, service: &str, before: &Instances<P>, now: &Instances<P>) {
    let (mut came, mut gone) = (Named::default(), Named::default());
    let is_same = |_: &Candidate<P>, _: &Candidate<P>| true;
    before.all.differences(&now.all, is_same, |id, before, _| match before {
        Some(_) => gone.add(id),
        None => came.add(id),
    });
    let available = now.len();
    if came.count + gone.count > 0 || available != before.len() {
        let (came, gone) = (came.words(), gone.words());
        // Event: Instances of a followed service were added, removed, enabled or disabled.
        tracing::info!(target: "docent::discovery", %client, service, came, gone, available, "instances changed");
    }
}

/// A number of ids, of which the first few are named.
#[derive(Default)]
struct Named {
    first: Vec<Arc<str>>,
    count: usize,
}

impl Named {
    const MAX_NAMED: usize = 3;

    fn add(&mut self, id: &Arc<str>) {
        self.count += 1;
        if self.first.len() < Self::MAX_NAMED {
            self.first.push(Arc::clone(id));
        }
    }

    /// Returns the ids in a few words, or `None` if there are none.
    fn words(&self) -> Option<String> {
        let named = self.first.join(", ");
        match self.count {
            0 => None,
            more if more > Self::MAX_NAMED => Some(format!("{named} and {} more", more - Self::MAX_NAMED)),
            _ => Some(named),
        }
    }
}
