use super::change::{Change, describe};
use super::findings::{Finding, FindingKind, findings};
use super::past::{Past, Sample, Term};
use docent::inspect::{
    InstanceState, Kind, LeftOut, LiveSurvey, Recipe, Refusal, Report, StakeRole, SurveyEvent,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::watch;

/// Maximum number of recent changes.
const MAX_CHANGES: usize = 100;

/// Ages from which on something is a finding.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Thresholds {
    pub(crate) holder_age: Duration,
    pub(crate) head_age: Duration,
}

/// How current the reports are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Link {
    /// Nothing was read yet.
    Reading,
    Current,
    /// The connection was lost, or a read failed, at this time of the servers.
    Stale(SystemTime),
}

/// All recipes below the root, shared by all browsers.
#[derive(Debug)]
pub(crate) struct World {
    state: Mutex<State>,
    version: watch::Sender<u64>,
    thresholds: Thresholds,
}

#[derive(Debug)]
struct State {
    reports: BTreeMap<Arc<str>, Arc<Report>>,
    link: Link,
    failure: Option<String>,
    refused: Vec<Refusal>,
    left_out: LeftOut,
    unwatched: usize,
    /// The newest known time of the servers, and when it was learned.
    clock: Option<(SystemTime, Instant)>,
    changes: VecDeque<Change>,
    past: Past,
    changes_total: u64,
    /// Totals and findings, with the version of the world and the time at which they were counted.
    counted: Option<(u64, Instant, Arc<Totals>)>,
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
    pub(crate) findings: Vec<Finding>,
    pub(crate) leader_changes: u64,
    pub(crate) changes: u64,
    pub(crate) refused: usize,
    pub(crate) left_out: LeftOut,
    pub(crate) unwatched: usize,
}

impl World {
    pub(crate) fn new(thresholds: Thresholds) -> Self {
        let state = State {
            reports: BTreeMap::new(),
            link: Link::Reading,
            failure: None,
            refused: Vec::new(),
            left_out: LeftOut::default(),
            unwatched: 0,
            clock: None,
            changes: VecDeque::new(),
            past: Past::default(),
            changes_total: 0,
            counted: None,
        };
        Self { state: Mutex::new(state), version: watch::Sender::new(0), thresholds }
    }

    /// Returns a receiver that is told of each change.
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
        (state.link.clone(), state.failure.clone())
    }

    /// Returns the current time of the servers, or the local time before anything was read.
    pub(crate) fn now(&self) -> SystemTime {
        now(self.state().clock)
    }

    /// Returns the recent changes, the latest first.
    pub(crate) fn changes(&self) -> Vec<Change> {
        self.state().changes.iter().rev().cloned().collect()
    }

    pub(crate) fn terms(&self, path: &str) -> Vec<Term> {
        self.state().past.terms(path)
    }

    pub(crate) fn samples(&self, path: &str) -> Vec<Sample> {
        self.state().past.samples(path)
    }

    /// Returns the numbers over all recipes. They are counted at most once a second, and only after a change
    /// or after ages have grown.
    pub(crate) fn totals(&self) -> Arc<Totals> {
        let version = *self.version.borrow();
        let mut state = self.state();
        if let Some((counted, at, totals)) = &state.counted {
            let age = at.elapsed();
            let lasts = if *counted == version { Duration::from_secs(5) } else { Duration::from_secs(1) };
            if age < lasts && !totals.recipes.is_empty() {
                return Arc::clone(totals);
            }
        }
        let totals = Arc::new(state.count(self.thresholds));
        state.counted = Some((version, Instant::now(), Arc::clone(&totals)));
        totals
    }

    /// Applies an event of the survey.
    pub(crate) fn apply(&self, event: SurveyEvent) {
        self.update(|state| state.apply(event));
    }

    /// Records an error that is not an outage.
    pub(crate) fn fail(&self, error: &docent::Error) {
        self.update(|state| {
            state.failure = Some(error.to_string());
            state.set_stale();
        });
    }

    /// Records the depth of all queues, which tells the browsers of time that has passed.
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

    fn update(&self, update: impl FnOnce(&mut State)) {
        update(&mut self.state());
        self.version.send_modify(|version| *version += 1);
    }
}

impl State {
    fn apply(&mut self, event: SurveyEvent) {
        match event {
            SurveyEvent::Snapshot(live) => self.replace(*live),
            SurveyEvent::Changed(report) => self.change(*report),
            SurveyEvent::Gone { path, .. } => self.remove(&path),
            SurveyEvent::Gaps { refused, left_out, unwatched } => {
                (self.refused, self.left_out, self.unwatched) = (refused, left_out, unwatched);
            }
            SurveyEvent::Stale => self.set_stale(),
            SurveyEvent::Current => (self.link, self.failure) = (Link::Current, None),
            _ => {}
        }
    }

    /// Takes over a snapshot: the first one, or one after changes that were missed.
    fn replace(&mut self, live: LiveSurvey) {
        let is_first = self.link == Link::Reading;
        let survey = live.survey;
        self.learn(survey.clock.map(|clock| clock.now));
        let now = now(self.clock);
        let mut before = std::mem::take(&mut self.reports);
        for report in survey.found {
            let path: Arc<str> = Arc::from(&*report.path);
            self.past.report(&path, &report, now);
            let old = before.remove(&path);
            if !is_first {
                self.note(old.as_deref(), &report);
            }
            self.reports.insert(path, Arc::new(report));
        }
        for path in before.into_keys() {
            self.past.gone(&path, now);
        }
        (self.refused, self.left_out, self.unwatched) = (survey.refused, survey.left_out, live.unwatched);
        match live.is_stale {
            true => self.set_stale(),
            false => (self.link, self.failure) = (Link::Current, None),
        }
    }

    fn change(&mut self, report: Report) {
        self.learn(report.clock.map(|clock| clock.now));
        let path: Arc<str> = Arc::from(&*report.path);
        self.past.report(&path, &report, now(self.clock));
        let old = self.reports.get(&path).cloned();
        self.note(old.as_deref(), &report);
        self.reports.insert(path, Arc::new(report));
    }

    fn remove(&mut self, path: &str) {
        let at = now(self.clock);
        let Some(old) = self.reports.remove(path) else { return };
        self.past.gone(path, at);
        let text = match old.kind() {
            Kind::Mutex | Kind::ReadWriteLock | Kind::Semaphore => "is free".to_owned(),
            Kind::Election => "has no candidates".to_owned(),
            kind => format!("{} is gone", kind.name().replace('_', " ")),
        };
        self.push(Change { path: path.to_owned(), text, at });
    }

    fn note(&mut self, old: Option<&Report>, new: &Report) {
        if let Some(text) = describe(old, new) {
            self.push(Change { path: new.path.clone(), text, at: now(self.clock) });
        }
    }

    fn push(&mut self, change: Change) {
        self.changes_total += 1;
        self.changes.push_back(change);
        if self.changes.len() > MAX_CHANGES {
            self.changes.pop_front();
        }
    }

    fn set_stale(&mut self) {
        if !matches!(self.link, Link::Stale(_)) {
            self.link = Link::Stale(now(self.clock));
        }
    }

    /// Learns a time of the servers. The known time never goes back.
    fn learn(&mut self, time: Option<SystemTime>) {
        if let Some(time) = time.filter(|time| self.clock.is_none() || *time > now(self.clock)) {
            self.clock = Some((time, Instant::now()));
        }
    }

    fn count(&self, thresholds: Thresholds) -> Totals {
        let now = now(self.clock);
        let mut totals = Totals {
            findings: findings(&self.reports, &self.past, thresholds, now),
            leader_changes: self.past.leader_changes,
            changes: self.changes_total,
            refused: self.refused.len(),
            left_out: self.left_out,
            unwatched: self.unwatched,
            ..Totals::default()
        };
        let age = |since: SystemTime| now.duration_since(since).unwrap_or_default();
        for report in self.reports.values() {
            let kind = report.kind();
            *totals.recipes.entry(kind).or_default() += 1;
            match &report.recipe {
                Recipe::Queue(queue) => {
                    totals.queue_items += queue.depth;
                    totals.dead_letters += queue.dead.unwrap_or_default();
                    let head = queue.head.as_ref().and_then(|head| head.since).map(|since| age(since.at));
                    totals.oldest_head = totals.oldest_head.max(head.unwrap_or_default());
                }
                Recipe::Service(service) => {
                    for instance in &service.instances {
                        *totals.instances.entry(state_name(instance.state)).or_default() += 1;
                    }
                }
                _ => {}
            }
            for stake in report.stakes() {
                match stake.role {
                    StakeRole::Holds | StakeRole::Leads => {
                        *totals.holders.entry(kind).or_default() += 1;
                        let oldest = totals.oldest_holder.entry(kind).or_default();
                        *oldest = (*oldest).max(stake.since.map(|since| age(since.at)).unwrap_or_default());
                    }
                    StakeRole::Waits | StakeRole::Stands => *totals.waiters.entry(kind).or_default() += 1,
                    _ => {}
                }
            }
        }
        totals
    }
}

impl Totals {
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
