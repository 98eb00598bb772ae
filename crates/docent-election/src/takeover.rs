//! Mark by which the next leader knows whether its predecessor resigned: a leader's term stands in the
//! election's own node from when it began until it resigned. A read of that node by the next leader is new
//! enough: its server has seen the predecessor leave.

use docent_core::recipe::{Hold, Line};
use docent_core::{Error, ErrorKind, Fence, planted};
use std::time::Duration;

const PREFIX: &str = "docent-term:";

/// Waits for `delay` if the leader before did not resign, and writes the own term down. `told` is the lost
/// leader that the log named last.
pub(crate) async fn begin(
    line: &Line,
    hold: &Hold,
    delay: Duration,
    told: &mut Option<Fence>,
) -> Result<(), Error> {
    let before = match line.client().get(line.path()).await {
        Ok(node) => read(line.path(), &node.data)?,
        // So is the ticket, which is found out below.
        Err(error) if error.kind() == ErrorKind::NoNode => None,
        Err(error) => return Err(error),
    };
    if let Some(term) = before.filter(|term| *term != hold.fence() && !planted!(TakeoverDelayForgotten)) {
        if told.replace(term) != Some(term) {
            tracing::info!(client = line.client().label(), path = line.path(), %term, ?delay, "the leader before did not resign: taking over after a delay");
        }
        if hold.run(tokio::time::sleep(delay)).await.is_err() {
            hold.check_for("campaign")?;
        }
    }
    let term = format!("{PREFIX}{}", hold.fence());
    loop {
        match hold.transaction().set(line.path(), term.clone(), None).commit().await {
            // Written again, or applied late, it is the same; once the ticket is gone it is refused
            // (decision 11).
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {}
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
    if let Err(error) = hold.transaction().set(election, "", None).commit().await {
        tracing::info!(client = hold.client().label(), path = election, %error, "the next leader will wait");
    }
}

/// The term of a leader that the data of an election's node names; `None` for other data.
pub fn term(data: &[u8]) -> Option<Fence> {
    std::str::from_utf8(data).ok()?.strip_prefix(PREFIX)?.parse().ok()
}

/// The term that the node's data names. Data that others wrote there is not overwritten.
fn read(path: &str, data: &[u8]) -> Result<Option<Fence>, Error> {
    if data.is_empty() {
        return Ok(None);
    }
    term(data).map(Some).ok_or_else(|| {
        let rule = "must hold nothing but the term of a leader, because a takeover delay is set";
        Error::invalid_input("campaign", format!("node {path:?} {rule}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_is_read_as_it_is_written_and_foreign_data_is_refused() {
        assert_eq!(read("/e", b"").unwrap(), None);
        assert_eq!(read("/e", b"docent-term:4294967301").unwrap(), Some("4294967301".parse().unwrap()));
        for foreign in [&b"docent-term:"[..], b"docent-term:7 ", b"7", b"\xff"] {
            let error = read("/e", foreign).unwrap_err().to_string();
            assert!(error.contains("\"/e\" must hold nothing but"), "{error}");
        }
    }
}
