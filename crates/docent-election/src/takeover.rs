//! Mark by which the next leader knows whether its predecessor resigned: a leader's term stands in the
//! election's own node from when it began until it resigned. A read of that node by the next leader is new
//! enough: its server has seen the predecessor leave.

use docent_core::recipe::{Hold, Line};
use docent_core::{CreateMode, Error, ErrorKind, Fence, planted};
use std::time::Duration;

const PREFIX: &str = "docent-term:";
/// In place of a term: there is none, and the node stays when it has no children.
const NONE: &str = "none";
/// Persistent child of an election's node that may be a container, which the servers would delete together
/// with the term once nobody stands. Its name sorts behind those of all candidates, also for Curator.
pub(crate) const KEEPER: &str = "docent-keeper";

/// State of the election's own node.
#[derive(Debug, PartialEq, Eq)]
enum Record {
    /// It has no data: it may be a container, made for candidates without a takeover delay.
    Blank,
    /// It stays, with the term of a leader that did not resign, if there is one.
    Kept(Option<Fence>),
}

/// Creates the election's node, if there is none, as one that stays.
pub(crate) async fn prepare(line: &Line) -> Result<(), Error> {
    let (client, path) = (line.client(), line.path());
    if client.exists(path).await?.is_some() {
        return Ok(());
    }
    match client.create(path, format!("{PREFIX}{NONE}"), CreateMode::Persistent).await {
        // Whichever client made it: `begin` reads its data. Of unknown outcome, the next ticket creates it.
        Err(error) if matches!(error.kind(), ErrorKind::NodeExists | ErrorKind::OutcomeUnknown) => Ok(()),
        result => result.map(drop),
    }
}

/// Waits for `delay` if the leader before did not resign, and writes the own term down. `told` is the lost
/// leader that the log named last.
pub(crate) async fn begin(
    line: &Line,
    hold: &Hold,
    delay: Duration,
    told: &mut Option<Fence>,
) -> Result<(), Error> {
    let record = match line.client().get(line.path()).await {
        Ok(node) => read(line.path(), &node.data)?,
        // So is the ticket, which is found out below.
        Err(error) if error.kind() == ErrorKind::NoNode => Record::Blank,
        Err(error) => return Err(error),
    };
    if let Record::Kept(Some(term)) = record
        && term != hold.fence()
        && !planted!(TakeoverDelayForgotten)
    {
        if told.replace(term) != Some(term) {
            tracing::info!(client = line.client().label(), path = line.path(), %term, ?delay, "the leader before did not resign: taking over after a delay");
        }
        if hold.run(tokio::time::sleep(delay)).await.is_err() {
            hold.check_for("campaign")?;
        }
    }
    record_term(line, hold, record == Record::Blank && !planted!(TermInContainer)).await
}

/// Writes the term of `hold` into the election's node, and creates the child that keeps the node if `blank`.
async fn record_term(line: &Line, hold: &Hold, mut blank: bool) -> Result<(), Error> {
    let (term, keeper) = (format!("{PREFIX}{}", hold.fence()), format!("{}/{KEEPER}", line.path()));
    loop {
        let write = hold.transaction();
        let write = if blank { write.create(&keeper, "", CreateMode::Persistent) } else { write };
        match write.set(line.path(), term.clone(), None).commit().await {
            // Written again, or applied late, it is the same; once the ticket is gone it is refused
            // (decision 11).
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {}
            Err(error) if blank && error.kind() == ErrorKind::NodeExists => blank = false,
            // Its lease may have run out while the answer was on its way.
            result => return result.and_then(|_| hold.check_for("campaign")),
        }
    }
}

/// Takes the term out: submitted when this is first polled, and applied only before the leader's node is
/// deleted. If it fails, the next leader waits in vain, which does no harm.
pub(crate) async fn clear(hold: &Hold) {
    let own = hold.path();
    let Some((election, _)) = own.rsplit_once('/') else { return };
    let none = format!("{PREFIX}{NONE}");
    if let Err(error) = hold.transaction().set(election, none, None).commit().await {
        tracing::info!(client = hold.client().label(), path = election, %error, "the next leader will wait");
    }
}

/// Deletes the child that keeps the election's node together with the node, in one step.
///
/// # Errors
/// `NotEmpty` when a candidate stands: then both stay.
pub(crate) async fn remove_keeper(line: &Line) -> Result<(), Error> {
    let keeper = format!("{}/{KEEPER}", line.path());
    let delete = line.client().transaction().delete(&keeper, None).delete(line.path(), None);
    match delete.commit_exactly().await {
        Err(error) if error.kind() == ErrorKind::NoNode => Ok(()),
        result => result.map(drop),
    }
}

/// The term of a leader that the data of an election's node names; `None` for other data.
pub fn term(data: &[u8]) -> Option<Fence> {
    std::str::from_utf8(data).ok()?.strip_prefix(PREFIX)?.parse().ok()
}

/// The state that the node's data names. Data that others wrote there is not overwritten.
fn read(path: &str, data: &[u8]) -> Result<Record, Error> {
    if data.is_empty() {
        return Ok(Record::Blank);
    }
    if data.strip_prefix(PREFIX.as_bytes()) == Some(NONE.as_bytes()) {
        return Ok(Record::Kept(None));
    }
    term(data).map(|term| Record::Kept(Some(term))).ok_or_else(|| {
        let rule = "must hold nothing but the term of a leader, because a takeover delay is set";
        Error::invalid_input("campaign", format!("node {path:?} {rule}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_is_read_as_it_is_written_and_foreign_data_is_refused() {
        assert_eq!(read("/e", b"").unwrap(), Record::Blank);
        assert_eq!(read("/e", b"docent-term:none").unwrap(), Record::Kept(None));
        let term = Some("4294967301".parse().unwrap());
        assert_eq!(read("/e", b"docent-term:4294967301").unwrap(), Record::Kept(term));
        for foreign in [&b"docent-term:"[..], b"docent-term:7 ", b"7", b"none", b"\xff"] {
            let error = read("/e", foreign).unwrap_err().to_string();
            assert!(error.contains("\"/e\" must hold nothing but"), "{error}");
        }
    }
}
