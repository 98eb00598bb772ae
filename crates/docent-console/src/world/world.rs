use super::change::{Change, describe};
use super::findings::{Evidence, Finding, FindingKind, findings, flapping};
use super::past::{Past, Sample, Term};
use docent::inspect::{
    InstanceState, Kind, LeftOut, LiveSurvey, Recipe, Refusal, Report, ServerState, ServerTime, StakeRole,
    SurveyEvent, TimeSource, Vitals,
};
use docent::transport::ServerAddress;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::watch;

/// Difference from the leader's clock that is not corrected: a report has the time at which its reads began.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);

/// Minimum time between two counts.
const RECOUNT: Duration = Duration::from_millis(200);

/// Maximum number of recent changes.
const MAX_CHANGES: usize = 100;

/// Settings of the world.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Ages from which on something is a finding.
    pub(crate) holder_age: Duration,
    pub(crate) head_age: Duration,
    /// False if texts may not contain what services have stored.
    pub(crate) shows_data: bool,
}

/// How current the reports are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Link {
    /// Nothing was read yet.
    Reading,
    Current,
    /// The connection was lost, or a read failed, at this time of the servers.
    Stale(SystemTime),
    /// The server has lost its quorum, so what it shows may be out of date.
    ReadOnly,
    /// The client was closed: nothing follows.
    Closed,
}

/// All recipes below the root, shared by all browsers.
#[derive(Debug)]
pub(crate) struct World {
    state: Mutex<State>,
    version: watch::Sender<u64>,
    rules: Rules,
    root: String,
    /// Totals, with the version of the world and the time at which they were counted.
    counted: Mutex<Option<(u64, Instant, Arc<Totals>)>>,
}

#[derive(Debug)]
struct State {
    reports: BTreeMap<Arc<str>, Arc<Report>>,
    link: Link,
    failure: Option<String>,
    refused: Vec<Refusal>,
    left_out: LeftOut,
    unwatched: usize,
    /// What the servers reported last, by their addresses in the connect string.
    servers: BTreeMap<String, Arc<Vitals>>,
    /// The newest known time of the servers, and when it was learned.
    clock: Option<(SystemTime, Instant)>,
    changes: VecDeque<Change>,
    past: Past,
    changes_total: u64,
    /// True once the tree was read.
    is_read: bool,
    is_read_only: bool,
}

/// Numbers over all recipes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Totals {
    pub(crate) recipes: BTreeMap<Kind, usize>,
    pub(crate) holders: BTreeMap<Kind, usize>,
    pub(crate) waiters: BTreeMap<Kind, usize>,
    pub(crate) oldest_holder: BTreeMap<Kind, Duration>,
    pub(crate) queue_items: usize,
    pub(crate) dead_letters: usize,
    pub(crate) oldest_head: Duration,
    pub(crate) instances: BTreeMap<&'static str, usize>,
    pub(crate) servers: BTreeMap<ServerState, usize>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) leader_changes: u64,
    pub(crate) changes: u64,
    pub(crate) refused: usize,
    pub(crate) left_out: LeftOut,
    pub(crate) unwatched: usize,
}

impl World {
    pub(crate) fn new(root: &str, rules: Rules) -> Self {
        let state = State {
            reports: BTreeMap::new(),
            link: Link::Reading,
            failure: None,
            refused: Vec::new(),
            left_out: LeftOut::default(),
            unwatched: 0,
            servers: BTreeMap::new(),
            clock: None,
            changes: VecDeque::new(),
            past: Past::default(),
            changes_total: 0,
            is_read: false,
            is_read_only: false,
        };
        let (state, counted) = (Mutex::new(state), Mutex::new(None));
        Self { state, version: watch::Sender::new(0), rules, root: root.to_owned(), counted }
    }

    /// Returns a receiver that is notified of each change.
    pub(crate) fn versions(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the report on a path.
    pub(crate) fn report(&self, path: &str) -> Option<Arc<Report>> {
        self.state().reports.get(path).cloned()
    }

    /// Returns all reports that are selected, in the order of their paths.
    pub(crate) fn select(&self, select: impl Fn(&Report) -> bool) -> Vec<Arc<Report>> {
        // The selection runs without the lock.
        let all: Vec<_> = self.state().reports.values().cloned().collect();
        all.into_iter().filter(|report| select(report)).collect()
    }

    pub(crate) fn link(&self) -> (Link, Option<String>) {
        let state = self.state();
        let link = match &state.link {
            Link::Current if state.is_read_only => Link::ReadOnly,
            link => link.clone(),
        };
        (link, state.failure.clone())
    }

    /// Returns what each of these servers reported last, or `None` if it was not queried yet.
    pub(crate) fn servers(
        &self,
        servers: Vec<ServerAddress>,
    ) -> impl Iterator<Item = (String, Option<Arc<Vitals>>)> {
        let known = self.state().servers.clone();
        servers.into_iter().map(move |server| {
            let server = server.to_string();
            let vitals = known.get(&server).cloned();
            (server, vitals)
        })
    }

    /// Returns the current time of the servers, or the local time before anything was read.
    pub(crate) fn now(&self) -> SystemTime {
        now(self.state().clock)
    }

    /// Returns the recent changes, the latest first, but not more than `most`.
    pub(crate) fn changes(&self, most: usize) -> Vec<Change> {
        self.state().changes.iter().rev().take(most).cloned().collect()
    }

    pub(crate) fn terms(&self, path: &str) -> Vec<Term> {
        self.state().past.terms(path)
    }

    pub(crate) fn samples(&self, path: &str) -> Vec<Sample> {
        self.state().past.samples(path)
    }

    /// Returns true if the last count does not include all changes.
    pub(crate) fn are_totals_old(&self) -> bool {
        let counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.as_ref().is_some_and(|(of, ..)| *of != *self.version.borrow())
    }

    /// Returns the numbers over all recipes. They are counted at most five times a second, and only
    /// after a change or after ages have grown.
    pub(crate) fn totals(&self) -> Arc<Totals> {
        let version = *self.version.borrow();
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, at, totals)) = &*counted {
            let lasts = if *of == version { Duration::from_secs(5) } else { RECOUNT };
            if at.elapsed() < lasts && !totals.recipes.is_empty() {
                return Arc::clone(totals);
            }
        }
        let totals = Arc::new(self.count());
        *counted = Some((version, Instant::now(), Arc::clone(&totals)));
        totals
    }

    fn count(&self) -> Totals {
        let (link, _) = self.link();
        let (reports, flapping, refused, servers, mut totals, now) = {
            let state = self.state();
            let now = now(state.clock);
            let reports: Vec<_> =
                state.reports.iter().map(|(path, report)| (Arc::clone(path), Arc::clone(report))).collect();
            let totals = Totals {
                leader_changes: state.past.leader_changes,
                changes: state.changes_total,
                refused: state.refused.len(),
                left_out: state.left_out,
                unwatched: state.unwatched,
                ..Totals::default()
            };
            let servers: Vec<_> = state.servers.values().cloned().collect();
            (reports, flapping(&state.past, now), state.refused.clone(), servers, totals, now)
        };
        totals.count(&reports, now);
        for vitals in &servers {
            *totals.servers.entry(vitals.state).or_default() += 1;
        }
        totals.findings = findings(&Evidence {
            reports: &reports,
            flapping,
            refused: &refused,
            servers: &servers,
            left_out: totals.left_out,
            link: &link,
            root: &self.root,
            rules: self.rules,
            now,
        });
        totals
    }

    /// Applies an event of the survey. Only one task does so.
    pub(crate) fn apply(&self, event: SurveyEvent) {
        // Large reports are compared, and the old ones dropped, without the lock.
        match event {
            SurveyEvent::Snapshot(live) => drop(self.replace(*live)),
            SurveyEvent::Changed(report) => {
                let old = self.report(&report.path);
                let text = describe(old.as_deref(), &report, self.rules.shows_data);
                drop(self.update(|state| state.change(*report, text)));
            }
            SurveyEvent::Gone { path, .. } => drop(self.update(|state| state.remove(&path))),
            SurveyEvent::Gaps { refused, left_out, unwatched } => self.update(|state| {
                (state.refused, state.left_out, state.unwatched) = (refused, left_out, unwatched);
            }),
            SurveyEvent::Stale => self.update(State::set_stale),
            SurveyEvent::Current => self.update(|state| (state.link, state.failure) = (Link::Current, None)),
            _ => {}
        }
    }

    /// Takes over a snapshot: the first one, or one after changes that were missed. Returns the reports
    /// before it.
    fn replace(&self, live: LiveSurvey) -> BTreeMap<Arc<str>, Arc<Report>> {
        let (before, is_read) = {
            let state = self.state();
            (state.reports.clone(), state.is_read)
        };
        let survey = live.survey;
        let found: BTreeMap<Arc<str>, _> =
            survey.found.into_iter().map(|report| (Arc::from(&*report.path), Arc::new(report))).collect();
        let mut texts = Vec::new();
        if is_read {
            for (path, report) in &found {
                let old = before.get(path).map(Arc::as_ref);
                let text = describe(old, report, self.rules.shows_data);
                texts.extend(text.map(|text| (path.to_string(), text)));
            }
            let gone = before.iter().filter(|(path, _)| !found.contains_key(*path));
            texts.extend(gone.map(|(path, old)| (path.to_string(), end_of(old))));
        }
        self.update(|state| {
            state.learn(survey.clock);
            let at = now(state.clock);
            found.iter().for_each(|(path, report)| state.past.report(path, report, at));
            before
                .keys()
                .filter(|path| !found.contains_key(*path))
                .for_each(|path| state.past.gone(path, at));
            texts.into_iter().for_each(|(path, text)| state.push(Change { path, text, at }));
            (state.refused, state.left_out) = (survey.refused, survey.left_out);
            (state.unwatched, state.is_read) = (live.unwatched, true);
            if live.is_stale {
                state.link = Link::Current;
                state.set_stale();
            } else {
                (state.link, state.failure) = (Link::Current, None);
            }
            std::mem::replace(&mut state.reports, found)
        });
        before
    }

    /// Records whether the server that the client reads from has lost its quorum.
    pub(crate) fn set_read_only(&self, is_read_only: bool) {
        self.update(|state| state.is_read_only = is_read_only);
    }

    /// Records that nothing follows.
    pub(crate) fn close(&self) {
        self.update(|state| state.link = Link::Closed);
    }

    /// Records an error that is not an outage.
    pub(crate) fn fail(&self, error: &docent::Error) {
        self.update(|state| {
            state.failure = Some(error.to_string());
            state.set_stale();
        });
    }

    /// Forgets the servers that the client has no longer.
    pub(crate) fn keep_servers(&self, servers: &[ServerAddress]) {
        let kept: BTreeSet<String> = servers.iter().map(ToString::to_string).collect();
        if self.state().servers.keys().any(|server| !kept.contains(server)) {
            self.update(|state| state.servers.retain(|server, _| kept.contains(server)));
        }
    }

    /// Records what a server reported.
    pub(crate) fn report_server(&self, vitals: Vitals) {
        if self.state().servers.get(&vitals.server).is_none_or(|known| **known != vitals) {
            self.update(|state| state.servers.insert(vitals.server.clone(), Arc::new(vitals)));
        }
    }

    /// Records the depth of all queues, which also notifies the browsers that time has passed.
    pub(crate) fn sample(&self) {
        self.update(|state| {
            let now = now(state.clock);
            let queues = state.reports.iter().filter_map(|(path, report)| match &report.recipe {
                Recipe::Queue(queue) => Some((path, queue)),
                _ => None,
            });
            state.past.sample(queues, now);
        });
    }

    /// Updates the state, and notifies the browsers. What the update returns can be dropped without the lock.
    fn update<T>(&self, update: impl FnOnce(&mut State) -> T) -> T {
        let updated = update(&mut self.state());
        self.version.send_modify(|version| *version += 1);
        updated
    }
}

impl State {
    /// Returns the report that was replaced.
    fn change(&mut self, report: Report, text: Option<String>) -> Option<Arc<Report>> {
        self.learn(report.clock);
        let (path, at): (Arc<str>, _) = (Arc::from(&*report.path), now(self.clock));
        self.past.report(&path, &report, at);
        if let Some(text) = text {
            self.push(Change { path: path.to_string(), text, at });
        }
        self.reports.insert(path, Arc::new(report))
    }

    /// Returns the report that was removed.
    fn remove(&mut self, path: &str) -> Option<Arc<Report>> {
        let (old, at) = (self.reports.remove(path)?, now(self.clock));
        self.past.gone(path, at);
        self.push(Change { path: path.to_owned(), text: end_of(&old), at });
        Some(old)
    }

    fn push(&mut self, change: Change) {
        self.changes_total += 1;
        self.changes.push_back(change);
        if self.changes.len() > MAX_CHANGES {
            self.changes.pop_front();
        }
    }

    fn set_stale(&mut self) {
        if !matches!(self.link, Link::Stale(_) | Link::Closed) {
            self.link = Link::Stale(now(self.clock));
        }
    }

    /// Learns a time of the servers. Only the leader's clock itself may set the known time back: the time of
    /// some node is a lower bound.
    fn learn(&mut self, clock: Option<ServerTime>) {
        let Some(ServerTime { now: time, source, .. }) = clock else { return };
        let known = now(self.clock);
        let is_back = source == TimeSource::OwnNode && time + CLOCK_TOLERANCE < known;
        if self.clock.is_none() || time > known || is_back {
            self.clock = Some((time, Instant::now()));
        }
    }
}

/// Describes the end of a recipe.
fn end_of(old: &Report) -> String {
    match old.kind() {
        Kind::Mutex | Kind::ReadWriteLock | Kind::Semaphore => "is free".to_owned(),
        Kind::Election => "has no candidates".to_owned(),
        kind => format!("{} is gone", kind.name().replace('_', " ")),
    }
}

impl Totals {
    fn count(&mut self, reports: &[(Arc<str>, Arc<Report>)], now: SystemTime) {
        let age = |since: SystemTime| now.duration_since(since).unwrap_or_default();
        for (_, report) in reports {
            let kind = report.kind();
            *self.recipes.entry(kind).or_default() += 1;
            match &report.recipe {
                Recipe::Queue(queue) => {
                    self.queue_items += queue.depth;
                    self.dead_letters += queue.dead.unwrap_or_default();
                    let head = queue.head.as_ref().and_then(|head| head.since).map(|since| age(since.at));
                    self.oldest_head = self.oldest_head.max(head.unwrap_or_default());
                }
                Recipe::Service(service) => {
                    for instance in &service.instances {
                        *self.instances.entry(state_name(instance.state)).or_default() += 1;
                    }
                }
                _ => {}
            }
            for stake in report.stakes() {
                match stake.role {
                    StakeRole::Holds | StakeRole::Leads => {
                        *self.holders.entry(kind).or_default() += 1;
                        let oldest = self.oldest_holder.entry(kind).or_default();
                        *oldest = (*oldest)
                            .max(stake.held.or(stake.since).map(|since| age(since.at)).unwrap_or_default());
                    }
                    StakeRole::Waits | StakeRole::Stands => *self.waiters.entry(kind).or_default() += 1,
                    _ => {}
                }
            }
        }
    }

    /// Returns the number of findings of a kind.
    pub(crate) fn findings_of(&self, kind: FindingKind) -> usize {
        self.findings.iter().filter(|finding| finding.kind == kind).count()
    }
}

/// Returns the name of an instance's state, as in JSON.
pub(crate) fn state_name(state: InstanceState) -> &'static str {
    match state {
        InstanceState::Enabled => "enabled",
        InstanceState::Disabled => "disabled",
        _ => "unreadable",
    }
}

fn now(clock: Option<(SystemTime, Instant)>) -> SystemTime {
    clock.map_or_else(SystemTime::now, |(time, at)| time + at.elapsed())
}
