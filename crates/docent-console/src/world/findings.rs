use super::owner::{owner_of, shortened};
use super::past::Past;
use super::{Link, Rules};
use docent::inspect::{
    InstanceState, LeftOut, Recipe, Refusal, Report, ServerState, StakeRole, Vitals, printable,
};
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
    /// Path of the recipe, or the root if the finding is not about a recipe.
    pub(crate) path: Arc<str>,
    pub(crate) text: String,
    /// Time since which it is so, if a node shows it.
    pub(crate) since: Option<SystemTime>,
}

/// Kinds of findings, in the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum FindingKind {
    Stale,
    ServerDown,
    NoQuorum,
    NoInstances,
    NoLeader,
    Flapping,
    DeadLetters,
    OldHead,
    OldHolder,
    Unreadable,
    Omitted,
}

impl FindingKind {
    pub(crate) const ALL: [Self; 11] = [
        Self::Stale,
        Self::ServerDown,
        Self::NoQuorum,
        Self::NoInstances,
        Self::NoLeader,
        Self::Flapping,
        Self::DeadLetters,
        Self::OldHead,
        Self::OldHolder,
        Self::Unreadable,
        Self::Omitted,
    ];

    /// Returns the name in metrics. Pages show it with spaces.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stale => "stale_view",
            Self::ServerDown => "server_down",
            Self::NoQuorum => "no_quorum",
            Self::NoInstances => "no_instances",
            Self::NoLeader => "no_leader",
            Self::Flapping => "flapping_leader",
            Self::DeadLetters => "dead_letters",
            Self::OldHead => "old_queue_head",
            Self::OldHolder => "old_holder",
            Self::Unreadable => "unreadable",
            Self::Omitted => "omitted",
        }
    }

    /// Returns true for findings that mean that something does not work at all.
    pub(crate) fn is_bad(self) -> bool {
        matches!(
            self,
            Self::Stale
                | Self::ServerDown
                | Self::NoQuorum
                | Self::NoInstances
                | Self::NoLeader
                | Self::Flapping
        )
    }
}

/// What findings are based on.
pub(super) struct Evidence<'a> {
    pub(super) reports: &'a [(Arc<str>, Arc<Report>)],
    /// Paths of elections with many leaders, and the number of these.
    pub(super) flapping: Vec<(Arc<str>, usize)>,
    pub(super) refused: &'a [Refusal],
    pub(super) servers: &'a [Arc<Vitals>],
    pub(super) left_out: LeftOut,
    pub(super) link: &'a Link,
    pub(super) root: &'a str,
    pub(super) rules: Rules,
    pub(super) now: SystemTime,
}

/// Maximum number of unreadable nodes that are findings of their own.
const MAX_REFUSED: usize = 20;

/// Returns the findings about all recipes and servers, in the order of their kinds and paths.
pub(super) fn findings(evidence: &Evidence<'_>) -> Vec<Finding> {
    let Evidence { reports, refused, servers, left_out, root, rules, now, .. } = *evidence;
    let mut found: Vec<_> = reports.iter().flat_map(|(path, report)| of(path, report, rules, now)).collect();
    let finding = |kind, path: &str, text: String| Finding { kind, path: Arc::from(path), text, since: None };
    let faults = servers.iter().filter_map(|vitals| of_server(vitals));
    found.extend(faults.map(|(kind, text)| finding(kind, root, text)));
    let stale = |text: &str, since| {
        let (kind, path) = (FindingKind::Stale, Arc::from(root));
        Finding { kind, path, text: text.to_owned(), since }
    };
    match evidence.link {
        Link::Stale(since) => found.push(stale("what is shown may be out of date", Some(*since))),
        Link::ReadOnly => found.push(stale("the server has lost its quorum, and may be out of date", None)),
        Link::Closed => found.push(stale("the client is closed, and nothing is read any more", None)),
        Link::Reading | Link::Current => {}
    }
    for (path, count) in &evidence.flapping {
        found.push(finding(FindingKind::Flapping, path, format!("{count} new leaders in 5 minutes")));
    }
    for refusal in refused.iter().take(MAX_REFUSED) {
        found.push(finding(FindingKind::Unreadable, &refusal.path, "may not be read".to_owned()));
    }
    if !left_out.is_empty() {
        let text = "not everything is shown, because a limit was reached".to_owned();
        found.push(finding(FindingKind::Omitted, root, text));
    }
    found.sort_by(|one, other| (one.kind, &one.path).cmp(&(other.kind, &other.path)));
    found
}

/// Returns the elections that had many leaders recently.
pub(super) fn flapping(past: &Past, now: SystemTime) -> Vec<(Arc<str>, usize)> {
    let since = now.checked_sub(FLAPPING_PERIOD).unwrap_or(now);
    past.flapping(since, FLAPPING_LIMIT).map(|(path, count)| (Arc::clone(path), count)).collect()
}

/// Returns the finding about a server that does not serve. A server that does not report may serve.
fn of_server(vitals: &Vitals) -> Option<(FindingKind, String)> {
    let server = printable(&vitals.server);
    let reason = shortened(&printable(vitals.reason.as_deref().unwrap_or_default()));
    match vitals.state {
        _ if vitals.lacks_quorum() => Some((FindingKind::NoQuorum, format!("server {server} has no quorum"))),
        ServerState::Down => Some((FindingKind::ServerDown, format!("server {server} is down: {reason}"))),
        ServerState::Foreign => {
            let text = format!("server {server} does not answer as ZooKeeper does: {reason}");
            Some((FindingKind::ServerDown, text))
        }
        _ => None,
    }
}

fn of(path: &Arc<str>, report: &Report, rules: Rules, now: SystemTime) -> Vec<Finding> {
    let is_older =
        |since: SystemTime, limit: Duration| now.duration_since(since).is_ok_and(|age| age > limit);
    let finding = |kind, text: String, since| Finding { kind, path: Arc::clone(path), text, since };
    let mut found = Vec::new();
    match &report.recipe {
        Recipe::Registry(registry) => {
            let empty = registry.services.iter().filter(|service| service.instances == Some(0));
            found.extend(empty.map(|service| {
                let text = format!("service {} has no instances", shortened(&printable(&service.name)));
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
            if let Some(since) = since.filter(|since| is_older(since.at, rules.head_age)) {
                let text = "the item at the head waits".to_owned();
                found.push(finding(FindingKind::OldHead, text, Some(since.at)));
            }
        }
        // Members keep their items as long as the members are the same.
        Recipe::Partition(_) => {}
        _ => {
            let holders = report.stakes().into_iter().filter(|stake| stake.role == StakeRole::Holds);
            let old =
                holders.filter_map(|stake| Some((stake.held.or(stake.since)?.at, owner_of(&stake, true))));
            // One finding for each recipe: a semaphore may have thousands of holders.
            if let Some((since, owner)) = old.min().filter(|(since, _)| is_older(*since, rules.holder_age)) {
                found.push(finding(FindingKind::OldHolder, format!("held by {owner}"), Some(since)));
            }
        }
    }
    found
}
