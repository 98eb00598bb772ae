//! Lines of the log by which an outage can be followed: each names the client, the server and the cause.

use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::{LinkError, SessionEnd};
use crate::time::seconds;

/// The session is attached to a server, for the first time or again.
pub(super) fn tell_connected(shared: &Shared, generation: &SessionGeneration) {
    let news = &shared.ensemble.news;
    tracing::info!(
        client = %shared.label,
        server = news.server(),
        generation = generation.number,
        session_id = %hex(generation),
        timeout = %seconds(generation.lease.timeout()),
        down_for = news.down_for().map(seconds),
        "connected"
    );
}

/// The link of a session is lost.
pub(super) fn tell_suspended(shared: &Shared, generation: &SessionGeneration) {
    let news = &shared.ensemble.news;
    let left = generation.lease.deadline().since(generation.clock.now());
    let guards = generation.held.live();
    tracing::warn!(
        client = %shared.label,
        server = news.server(),
        cause = news.why_lost(),
        generation = generation.number,
        session_id = %hex(generation),
        guards,
        certain_for = (guards > 0).then(|| seconds(left)),
        "suspended: the link is lost"
    );
}

/// A session has ended, and not by the client's will.
pub(super) fn tell_loss(shared: &Shared, generation: &SessionGeneration, end: SessionEnd) {
    let (news, last_error) = (&shared.ensemble.news, &shared.ensemble.last_error);
    tracing::warn!(
        client = %shared.label,
        server = news.server(),
        cause = why(end, news.standstill().is_some(), last_error.get().as_deref()),
        stood_still = news.standstill().map(seconds),
        generation = generation.number,
        session_id = %hex(generation),
        "session is lost"
    );
}

fn why(end: SessionEnd, stood_still: bool, last: Option<&LinkError>) -> String {
    match (end, last) {
        (SessionEnd::Expired, _) if stood_still => {
            "the servers ended it: this process stood still".to_owned()
        }
        (SessionEnd::Expired, _) => "the servers ended it".to_owned(),
        (SessionEnd::Abandoned, Some(last)) => {
            format!("no server could be reached for too long; at last: {}", last.chain())
        }
        (SessionEnd::Abandoned, None) => "it was given up: a node of its own cannot be deleted".to_owned(),
        (SessionEnd::RolledBack, _) => "the servers were restored from an older copy".to_owned(),
        (SessionEnd::AuthFailed, _) => "the servers refused the client's credentials".to_owned(),
        (SessionEnd::Closed, _) => "it was closed".to_owned(),
    }
}

fn hex(generation: &SessionGeneration) -> String {
    format!("{:#x}", generation.session.id())
}
