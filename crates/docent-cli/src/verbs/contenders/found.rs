use crate::exit::Failure;
use crate::verbs::inspect::identity;
use docent::Client;
use docent::inspect::{Claim, Contender, Inspector, Recipe, Report, Since};

/// One that holds something or waits for it: a contender, or the claim of a queue's item.
#[derive(Debug)]
pub(super) struct Found {
    /// Name of its node.
    pub(super) name: String,
    pub(super) holds: bool,
    /// Text about its owner.
    pub(super) owner: String,
    /// Time since which it holds or waits.
    pub(super) since: Option<Since>,
}

/// Reports about `path` without writing anything.
pub(super) async fn report(client: &Client, path: &str) -> Result<Report, Failure> {
    Ok(Inspector::builder(client).read_only().build().path(path).await?)
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
        Self { name: one.name.clone(), holds: one.holds, owner: identity(one), since: one.held.or(one.since) }
    }
}

impl From<&Claim> for Found {
    fn from(claim: &Claim) -> Self {
        let owner = claim.identity.as_ref().map(ToString::to_string).unwrap_or_default();
        Self { name: claim.item.clone(), holds: true, owner, since: claim.since }
    }
}
