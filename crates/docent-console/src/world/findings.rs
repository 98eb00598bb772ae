use super::Thresholds;
use super::past::Past;
use docent::inspect::{InstanceState, Recipe, Report, StakeRole};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Period in which leaders are counted to find elections without a lasting leader.
const FLAPPING_PERIOD: Duration = Duration::from_secs(5 * 60);

/// Number of new leaders within that period that is not yet a finding.
const FLAPPING_LIMIT: usize = 3;

/// Something that a person should look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) kind: FindingKind,
    /// Path of the recipe.
    pub(crate) path: Arc<str>,
    pub(crate) text: String,
    /// Time since which it is so, if a node shows it.
    pub(crate) since: Option<SystemTime>,
}

/// Kinds of findings, in the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum FindingKind {
    NoInstances,
    NoLeader,
    Flapping,
    DeadLetters,
    OldHead,
    OldHolder,
    Unreadable,
}

impl FindingKind {
    pub(crate) const ALL: [Self; 7] = [
        Self::NoInstances,
        Self::NoLeader,
        Self::Flapping,
        Self::DeadLetters,
        Self::OldHead,
        Self::OldHolder,
        Self::Unreadable,
    ];

    /// Returns the name in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NoInstances => "no_instances",
            Self::NoLeader => "no_leader",
            Self::Flapping => "flapping_leader",
            Self::DeadLetters => "dead_letters",
            Self::OldHead => "old_queue_head",
            Self::OldHolder => "old_holder",
            Self::Unreadable => "unreadable",
        }
    }

    /// Returns true for findings that mean that something does not work at all.
    pub(crate) fn is_bad(self) -> bool {
        matches!(self, Self::NoInstances | Self::NoLeader | Self::Flapping)
    }
}

/// Returns the findings about all recipes, in the order of their kinds and paths.
pub(super) fn findings(
    reports: &BTreeMap<Arc<str>, Arc<Report>>,
    past: &Past,
    thresholds: Thresholds,
    now: SystemTime,
) -> Vec<Finding> {
    let mut found: Vec<_> =
        reports.iter().flat_map(|(path, report)| of(path, report, thresholds, now)).collect();
    let since = now.checked_sub(FLAPPING_PERIOD).unwrap_or(now);
    let flapping = past.flapping(since, FLAPPING_LIMIT);
    found.extend(flapping.filter(|(path, _)| reports.contains_key(*path)).map(|(path, count)| Finding {
        kind: FindingKind::Flapping,
        path: Arc::clone(path),
        text: format!("{count} new leaders in 5 minutes"),
        since: None,
    }));
    found.sort_by(|one, other| (one.kind, &one.path).cmp(&(other.kind, &other.path)));
    found
}

fn of(path: &Arc<str>, report: &Report, thresholds: Thresholds, now: SystemTime) -> Vec<Finding> {
    let is_older =
        |since: SystemTime, limit: Duration| now.duration_since(since).is_ok_and(|age| age > limit);
    let finding = |kind, text: String, since| Finding { kind, path: Arc::clone(path), text, since };
    let mut found = Vec::new();
    match &report.recipe {
        Recipe::Registry(registry) => {
            let empty = registry.services.iter().filter(|service| service.instances == Some(0));
            found.extend(empty.map(|service| {
                let text = format!("service {} has no instances", docent::inspect::printable(&service.name));
                finding(FindingKind::NoInstances, text, None)
            }));
        }
        Recipe::Service(service) => {
            let is_enabled = |state| state == InstanceState::Enabled;
            if !service.instances.iter().any(|one| is_enabled(one.state)) {
                let text = "no instance is enabled".to_owned();
                found.push(finding(FindingKind::NoInstances, text, None));
            }
        }
        Recipe::Election(election) if election.leader.is_none() && !election.candidates.is_empty() => {
            found.push(finding(FindingKind::NoLeader, "has candidates but no leader".to_owned(), None));
        }
        Recipe::Queue(queue) => {
            if let Some(dead) = queue.dead.filter(|dead| *dead > 0) {
                let text =
                    if dead == 1 { "1 dead letter".to_owned() } else { format!("{dead} dead letters") };
                found.push(finding(FindingKind::DeadLetters, text, None));
            }
            let since = queue.head.as_ref().and_then(|head| head.since);
            if let Some(since) = since.filter(|since| is_older(since.at, thresholds.head_age)) {
                let text = "the item at the head waits".to_owned();
                found.push(finding(FindingKind::OldHead, text, Some(since.at)));
            }
        }
        _ => {
            let holders = report.stakes().into_iter().filter(|stake| stake.role == StakeRole::Holds);
            let old = holders.filter_map(|stake| Some((stake.since?.at, stake.owner())));
            // One finding for each recipe: a semaphore may have thousands of holders.
            if let Some((since, owner)) =
                old.min().filter(|(since, _)| is_older(*since, thresholds.holder_age))
            {
                found.push(finding(FindingKind::OldHolder, format!("held by {owner}"), Some(since)));
            }
        }
    }
    if !report.refused.is_empty() {
        let count = report.refused.len();
        found.push(finding(FindingKind::Unreadable, format!("{count} nodes may not be read"), None));
    }
    found
}
