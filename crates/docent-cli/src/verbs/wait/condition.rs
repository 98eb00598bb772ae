use docent::inspect::{InstanceState, Kind, QueueLayout, Recipe, Report};
use std::fmt;
use std::str::FromStr;

/// State to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    /// No holder, or a free permit.
    Free,
    /// No items.
    Empty,
    /// At least this many instances that may be given work.
    Instances(usize),
}

impl Condition {
    /// Returns whether the recipe has the state.
    ///
    /// # Errors
    /// A sentence that says why the recipe can never have it, or why that cannot be seen.
    pub(super) fn is_met(self, report: &Report) -> Result<bool, String> {
        let met = match (self, &report.recipe) {
            (_, Recipe::Unreadable) => None,
            (Self::Free | Self::Empty, Recipe::Absent) => Some(true),
            (Self::Instances(wanted), Recipe::Absent) => Some(wanted == 0),
            // A recipe without clients, such as a lock that was released, is a folder without children.
            (Self::Free | Self::Empty, Recipe::Plain(plain)) if plain.children == 0 => Some(true),
            (Self::Instances(wanted), Recipe::Plain(plain)) if plain.children == 0 => Some(wanted == 0),
            (Self::Free, recipe) => is_free(recipe),
            (Self::Empty, Recipe::Queue(queue)) if queue.layout != QueueLayout::CuratorClaims => {
                Some(queue.depth == 0)
            }
            (Self::Instances(wanted), Recipe::Service(service)) => {
                let enabled = service.instances.iter().filter(|one| one.state == InstanceState::Enabled);
                Some(enabled.count() >= wanted)
            }
            _ => None,
        };
        met.ok_or_else(|| match report.kind() {
            Kind::Semaphore => {
                format!(
                    "the limit of the semaphore {} is not stored, so a free permit cannot be seen",
                    report.path
                )
            }
            kind => format!("{} is of kind {kind}, which is never {self}", report.path),
        })
    }
}

fn is_free(recipe: &Recipe) -> Option<bool> {
    match recipe {
        Recipe::Mutex(line) | Recipe::ReadWriteLock(line) => Some(line.holders().next().is_none()),
        Recipe::Semaphore(semaphore) => {
            let out = semaphore.permits.len();
            semaphore.limit.map(|limit| out < usize::try_from(limit).unwrap_or(usize::MAX))
        }
        Recipe::Election(election) => Some(election.leader.is_none()),
        Recipe::TimedLease(lease) => lease.is_over,
        _ => None,
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Free => f.write_str("free"),
            Self::Empty => f.write_str("empty"),
            Self::Instances(count) => write!(f, "instances={count}"),
        }
    }
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let instances = || text.strip_prefix("instances=")?.parse().ok().map(Self::Instances);
        match text {
            "free" => Ok(Self::Free),
            "empty" => Ok(Self::Empty),
            _ => instances().ok_or_else(|| "must be free, empty or instances=N".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_parsed_and_printed() {
        for text in ["free", "empty", "instances=3"] {
            assert_eq!(text.parse::<Condition>().unwrap().to_string(), text);
        }
        for wrong in ["", "instances", "instances=", "instances=-1", "held", "Free"] {
            assert!(wrong.parse::<Condition>().is_err(), "{wrong}");
        }
    }
}
