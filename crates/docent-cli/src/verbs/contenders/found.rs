use crate::exit::Failure;
use crate::verbs::inspect::{describe_claim, describe_contender, readable};
use docent::Client;
use docent::inspect::{Claim, Contender, Inspector, Recipe, Report};

/// A holder or waiter: a contender, or the claim of a queue item.
#[derive(Debug)]
pub(super) struct Found {
    /// Name of its node.
    pub(super) name: String,
    pub(super) holds: bool,
    /// Text about the owner, and how long the node has existed.
    pub(super) owner: String,
}

/// Reports on `path`, with ages by the servers' clock.
///
/// # Errors
/// `NoPermission` if the path may not be read.
pub(super) async fn report(client: &Client, path: &str) -> Result<Report, Failure> {
    let report = Inspector::new(client).path(path).await?;
    readable(path, &report.refused)?;
    Ok(report)
}

/// Returns the contender with this name. Without a name, returns all holders, at least one.
///
/// # Errors
/// `Other` if there is none, or if the recipe at the path cannot be held.
pub(super) fn found(report: &Report, name: Option<&str>) -> Result<Vec<Found>, Failure> {
    let path = &report.path;
    let is_wanted = |one: &Found| name.map_or(one.holds, |name| one.name == name);
    let mut found = all(report)?;
    found.retain(is_wanted);
    // A leader may also be listed among the candidates.
    found.dedup_by(|one, other| one.name == other.name);
    match (found.is_empty(), name) {
        (false, _) => Ok(found),
        (true, Some(name)) => Err(Failure::other(format!("{path} has no contender {name:?}"))),
        (true, None) => Err(Failure::other(format!("{path} has no holder: nothing was done"))),
    }
}

/// Returns all holders and waiters.
fn all(report: &Report) -> Result<Vec<Found>, Failure> {
    Ok(match &report.recipe {
        Recipe::Mutex(line) | Recipe::ReadWriteLock(line) => {
            line.contenders.iter().map(Found::from).collect()
        }
        Recipe::Semaphore(semaphore) => {
            semaphore.permits.iter().chain(&semaphore.waiters).map(Found::from).collect()
        }
        Recipe::Election(election) => {
            election.leader.iter().chain(&election.candidates).map(Found::from).collect()
        }
        Recipe::Queue(queue) => queue.claims.iter().map(Found::from).collect(),
        // The folder of a lock that no client holds or waits for looks like any other.
        Recipe::Absent => return Err(free(&report.path)),
        Recipe::Plain(plain) if plain.children == 0 => return Err(free(&report.path)),
        other => {
            let text = format!("{} is of kind {}, which has no holder", report.path, other.kind());
            return Err(Failure::other(text));
        }
    })
}

fn free(path: &str) -> Failure {
    Failure::other(format!("{path} is free, and has no holder: nothing was done"))
}

impl From<&Contender> for Found {
    fn from(one: &Contender) -> Self {
        Self { name: one.name.clone(), holds: one.holds, owner: describe_contender(one) }
    }
}

impl From<&Claim> for Found {
    fn from(claim: &Claim) -> Self {
        Self { name: claim.item.clone(), holds: true, owner: describe_claim(claim) }
    }
}
