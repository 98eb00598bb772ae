use crate::exit::Failure;
use docent::Client;
use docent::inspect::{Contender, Inspector, Recipe, Report};

/// Reports about `path` without writing anything.
pub(super) async fn report(client: &Client, path: &str) -> Result<Report, Failure> {
    Ok(Inspector::builder(client).read_only().build().path(path).await?)
}

/// The contender of this name; without a name all who hold, at least one.
///
/// # Errors
/// `Other` when there is none, or the path is nothing that somebody holds.
pub(super) fn contenders(report: &Report, name: Option<&str>) -> Result<Vec<Contender>, Failure> {
    let path = &report.path;
    let all: Vec<&Contender> = match &report.recipe {
        Recipe::Mutex(line) | Recipe::ReadWriteLock(line) => line.contenders.iter().collect(),
        Recipe::Semaphore(semaphore) => semaphore.permits.iter().chain(&semaphore.waiters).collect(),
        Recipe::Election(election) => election.leader.iter().chain(&election.candidates).collect(),
        other => {
            let text = format!("{path} is of the kind {}, which nobody holds", other.kind());
            return Err(Failure::other(text));
        }
    };
    let is_wanted = |one: &&&Contender| name.map_or(one.holds, |name| one.name == name);
    let mut found: Vec<Contender> = all.iter().filter(is_wanted).map(|one| (*one).clone()).collect();
    // A leader may be listed among the candidates, too.
    found.dedup_by(|one, other| one.name == other.name);
    match (found.is_empty(), name) {
        (false, _) => Ok(found),
        (true, Some(name)) => Err(Failure::other(format!("{path} has no contender {name:?}"))),
        (true, None) => Err(Failure::other(format!("nobody holds {path}"))),
    }
}
