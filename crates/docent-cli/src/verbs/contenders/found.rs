use crate::exit::Failure;
use crate::verbs::inspect::{introduced, introduced_claim, readable};
use docent::Client;
use docent::inspect::{Claim, Contender, Inspector, Recipe, Report};

/// One that holds something or waits for it: a contender, or the claim of a queue's item.
#[derive(Debug)]
pub(super) struct Found {
    /// Name of its node.
    pub(super) name: String,
    pub(super) holds: bool,
    /// Text about its owner, and for how long it has been there.
    pub(super) owner: String,
}

/// Reports about `path`, with ages by the servers' clock.
///
/// # Errors
/// `NoPermission` when it may not be read.
pub(super) async fn report(client: &Client, path: &str) -> Result<Report, Failure> {
    let report = Inspector::new(client).path(path).await?;
    readable(path, &report.refused)?;
    Ok(report)
}

/// The one of this name; without a name all who hold, at least one.
///
/// # Errors
/// `Other` when there is none, or the path is nothing that somebody holds.
pub(super) fn found(report: &Report, name: Option<&str>) -> Result<Vec<Found>, Failure> {
    let path = &report.path;
    let is_wanted = |one: &Found| name.map_or(one.holds, |name| one.name == name);
    let mut found = all(report)?;
    found.retain(is_wanted);
    // A leader may be listed among the candidates, too.
    found.dedup_by(|one, other| one.name == other.name);
    match (found.is_empty(), name) {
        (false, _) => Ok(found),
        (true, Some(name)) => Err(Failure::other(format!("{path} has no contender {name:?}"))),
        (true, None) => Err(Failure::other(format!("nobody holds {path}"))),
    }
}

/// All who hold or wait.
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
        other => {
            let text = format!("{} is of the kind {}, which nobody holds", report.path, other.kind());
            return Err(Failure::other(text));
        }
    })
}

impl From<&Contender> for Found {
    fn from(one: &Contender) -> Self {
        Self { name: one.name.clone(), holds: one.holds, owner: introduced(one) }
    }
}

impl From<&Claim> for Found {
    fn from(claim: &Claim) -> Self {
        Self { name: claim.item.clone(), holds: true, owner: introduced_claim(claim) }
    }
}
