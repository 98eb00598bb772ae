//! Record by which the next leader learns whether its predecessor resigned. The election's own node holds the
//! leader's term from the beginning of the term until the leader resigns. The next leader's read of that node
//! is recent enough, because its server has already seen the predecessor leave.

use docent_core::recipe::{Hold, Line, full_error, full_path, if_exists};
use docent_core::{CreateMode, Error, ErrorKind, Fence, planted};
use std::time::Duration;

const PREFIX: &str = "docent-term:";
/// Data in place of a term: there is no term to record, and the node stays when it has no children.
const NONE: &str = "none";
/// Persistent child of an election's node that may be a container. Without the child, the servers would
/// delete the container together with the term once there is no candidate. The child's name sorts behind
/// those of all candidates, also for Curator.
pub(crate) const KEEPER: &str = "docent-keeper";

/// State of the election's own node.
#[derive(Debug, PartialEq, Eq)]
enum Record {
    /// The node has no data. It may be a container that was created for candidates without a takeover delay.
    Blank,
    /// The node is permanent. It holds the term of a leader that did not resign, if there is one.
    Term(Option<Fence>),
}

/// Creates the election's node as a persistent node if it does not exist.
pub(crate) async fn prepare(line: &Line) -> Result<(), Error> {
    let (client, path) = (line.client(), line.path());
    if client.exists(path).await?.is_some() {
        return Ok(());
    }
    match client.create(path, format!("{PREFIX}{NONE}"), CreateMode::Persistent).await {
        // Any client may have created the node: `begin` reads its data. If the outcome is unknown, the next
        // ticket creates the node.
        Err(error) if matches!(error.kind(), ErrorKind::NodeExists | ErrorKind::OutcomeUnknown) => Ok(()),
        result => result.map(drop),
    }
}

/// Waits for `delay` if the previous leader did not resign, then records the term of `hold`. `logged` is the
/// fence of the lost leader that was logged last.
pub(crate) async fn begin(
    line: &Line,
    hold: &Hold,
    delay: Duration,
    logged: &mut Option<Fence>,
) -> Result<(), Error> {
    let record = match if_exists(line.client().get(line.path()).await)? {
        Some(node) => read(line.path(), &node.data)?,
        // The ticket has been deleted as well, which the write below detects.
        None => Record::Blank,
    };
    if let Record::Term(Some(term)) = record
        && term != hold.fence()
        && !planted!(TakeoverDelayForgotten)
    {
        if logged.replace(term) != Some(term) {
            // Event: The previous leader was lost, killed or dropped without resigning. The new leader begins
            // its term only after the takeover delay.
            tracing::info!(target: "docent::election", client = %line.client().label(), path = %line.full_path(), %term, delay_seconds = delay.as_secs_f64(), "the previous leader did not resign; taking over after a delay");
        }
        if hold.run(tokio::time::sleep(delay)).await.is_err() {
            hold.check_for("campaign")?;
        }
    }
    record_term(line, hold, record == Record::Blank && !planted!(TermInContainer)).await
}

/// Writes the term of `hold` into the election's node. If `blank`, also creates the child that keeps the
/// node.
async fn record_term(line: &Line, hold: &Hold, mut blank: bool) -> Result<(), Error> {
    let (term, keeper) = (format!("{PREFIX}{}", hold.fence()), format!("{}/{KEEPER}", line.path()));
    loop {
        let write = hold.transaction();
        let write = if blank { write.create(&keeper, "", CreateMode::Persistent) } else { write };
        match write.set(line.path(), term.clone(), None).commit().await {
            // A repeated or late write has the same effect. Once the ticket is deleted, the servers refuse
            // the write (decision 11).
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {}
            Err(error) if blank && error.kind() == ErrorKind::NodeExists => blank = false,
            // The lease may have run out before the reply arrived.
            result => return result.and_then(|_| hold.check_for("campaign")),
        }
    }
}

/// Removes the term from the election's node. The write is submitted at the first poll and is applied only
/// before the leader's node is deleted. If it fails, the next leader waits for the takeover delay
/// unnecessarily, which does no harm.
pub(crate) async fn clear(hold: &Hold) {
    let own = hold.path();
    let Some((election, _)) = own.rsplit_once('/') else { return };
    let none = format!("{PREFIX}{NONE}");
    if let Err(error) = hold.transaction().set(election, none, None).commit().await {
        // Event: The leader could not remove its term from the election's node when it resigned. The next
        // leader waits for the takeover delay, although that is not necessary.
        tracing::info!(target: "docent::election", client = %hold.client().label(), path = %full_path(hold.client(), election), error = %full_error(hold.client(), &error), "could not record the resignation; the next leader will wait for the takeover delay");
    }
}

/// Deletes the election's node together with the child that keeps it, in one transaction.
///
/// # Errors
/// `NotEmpty` if there is a candidate: both nodes stay.
pub(crate) async fn remove_keeper(line: &Line) -> Result<(), Error> {
    let keeper = format!("{}/{KEEPER}", line.path());
    let delete = line.client().transaction().delete(&keeper, None).delete(line.path(), None);
    match delete.commit_exactly().await {
        Err(error) if error.kind() == ErrorKind::NoNode => Ok(()),
        result => result.map(drop),
    }
}

/// Returns the leader's term in the data of an election's node, or `None` for other data.
pub fn term(data: &[u8]) -> Option<Fence> {
    std::str::from_utf8(data).ok()?.strip_prefix(PREFIX)?.parse().ok()
}

/// Parses the data of the election's node. Data that other programs wrote is an error, so that it is not
/// overwritten.
fn read(path: &str, data: &[u8]) -> Result<Record, Error> {
    if data.is_empty() {
        return Ok(Record::Blank);
    }
    if data.strip_prefix(PREFIX.as_bytes()) == Some(NONE.as_bytes()) {
        return Ok(Record::Term(None));
    }
    term(data).map(|term| Record::Term(Some(term))).ok_or_else(|| {
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
        assert_eq!(read("/e", b"docent-term:none").unwrap(), Record::Term(None));
        let term = Some("4294967301".parse().unwrap());
        assert_eq!(read("/e", b"docent-term:4294967301").unwrap(), Record::Term(term));
        for foreign in [&b"docent-term:"[..], b"docent-term:7 ", b"7", b"none", b"\xff"] {
            let error = read("/e", foreign).unwrap_err().to_string();
            assert!(error.contains("\"/e\" must hold nothing but"), "{error}");
        }
    }
}
