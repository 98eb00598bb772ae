use super::owner::{owner_of, shortened};
use docent::inspect::{InstanceState, Recipe, Report, StakeRole, printable};
use std::collections::BTreeMap;
use std::time::SystemTime;

/// A change of a recipe, as a person would describe it.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) path: String,
    pub(crate) text: String,
    /// Time of the servers at which the change was seen.
    pub(crate) at: SystemTime,
}

/// Describes the difference between two reports on a recipe. Returns `None` for changes that happen all the
/// time, such as items that pass through a queue.
pub(super) fn describe(old: Option<&Report>, new: &Report, shows_data: bool) -> Option<String> {
    let Some(old) = old.filter(|old| old.kind() == new.kind()) else {
        return Some(format!("new {}", new.kind().name().replace('_', " ")));
    };
    match (&old.recipe, &new.recipe) {
        (Recipe::Service(before), Recipe::Service(now)) => {
            let states = |service: &docent::inspect::Service| -> BTreeMap<_, _> {
                service.instances.iter().map(|one| (one.node.clone(), one.state)).collect()
            };
            instances(&states(before), &states(now))
        }
        (Recipe::Config(before), Recipe::Config(now)) if before.version != now.version => {
            Some(format!("version {} published", now.version))
        }
        (Recipe::Value(before), Recipe::Value(now)) if before.version != now.version => {
            Some(format!("version {} written", now.version))
        }
        (Recipe::Queue(before), Recipe::Queue(now)) if before.dead < now.dead => {
            let dead = now.dead.unwrap_or_default();
            Some(if dead == 1 { "1 dead letter".to_owned() } else { format!("{dead} dead letters") })
        }
        (Recipe::Barrier(_), _) | (_, Recipe::Barrier(_)) => None,
        (Recipe::Registry(_) | Recipe::Queue(_) | Recipe::Counter(_), _) => None,
        _ => owners(old, new, shows_data),
    }
}

fn instances(
    before: &BTreeMap<String, InstanceState>,
    now: &BTreeMap<String, InstanceState>,
) -> Option<String> {
    let (before, now) = (short(before), short(now));
    let come = now.keys().filter(|node| !before.contains_key(*node)).map(|node| format!("{node} is up"));
    let gone = before.keys().filter(|node| !now.contains_key(*node)).map(|node| format!("{node} is down"));
    let turned = now.iter().filter(|(node, state)| before.get(*node).is_some_and(|old| old != *state));
    let turned = turned.map(|(node, state)| match state {
        InstanceState::Enabled => format!("{node} is enabled"),
        InstanceState::Disabled => format!("{node} is disabled"),
        _ => format!("{node} is unreadable"),
    });
    several(come.chain(gone).chain(turned))
}

/// Returns the states with names of nodes that are short and printable.
fn short(states: &BTreeMap<String, InstanceState>) -> BTreeMap<String, InstanceState> {
    states.iter().map(|(node, state)| (shortened(&printable(node)), *state)).collect()
}

/// Describes a change of those who hold, lead or joined.
fn owners(old: &Report, new: &Report, shows_data: bool) -> Option<String> {
    let of = |report: &Report| -> BTreeMap<String, (StakeRole, String)> {
        let stakes = report.stakes().into_iter().filter(|stake| stake.role.is_owner());
        stakes.map(|stake| (stake.name.to_owned(), (stake.role, owner_of(&stake, shows_data)))).collect()
    };
    let (before, now) = (of(old), of(new));
    let come = now.iter().filter(|(name, _)| !before.contains_key(*name)).map(|(_, (role, who))| {
        let deed = match role {
            StakeRole::Leads => "leads",
            StakeRole::Joins => "joined",
            _ => "holds",
        };
        format!("{who} {deed}")
    });
    let gone = before.iter().filter(|(name, _)| !now.contains_key(*name)).map(|(_, (role, who))| {
        let deed = match role {
            StakeRole::Leads => "no longer leads",
            StakeRole::Joins => "left",
            _ => "no longer holds",
        };
        format!("{who} {deed}")
    });
    several(gone.chain(come))
}

/// Joins descriptions, of which at most three are shown.
fn several(texts: impl Iterator<Item = String>) -> Option<String> {
    const SHOWN: usize = 3;
    let texts: Vec<_> = texts.collect();
    if texts.is_empty() {
        return None;
    }
    let more = texts.len().saturating_sub(SHOWN);
    let mut text = texts[..texts.len().min(SHOWN)].join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    Some(text)
}
