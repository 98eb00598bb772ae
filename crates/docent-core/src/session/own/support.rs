use crate::time::Timestamp;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Time after which a server without persistent watches is asked again, on a new link, because it may have
/// been upgraded.
const REMEMBERED: Duration = Duration::from_secs(600);

/// Number of consecutive links that a server closes without answering a request for a persistent watch before
/// this counts as a refusal. Servers before 3.6 answer and then close the link; the answer may be lost.
const SUSPICIOUS: u32 = 2;

/// Which servers support persistent watches. While an ensemble is upgraded, only some of them do.
#[derive(Debug, Default)]
pub(super) struct PersistentSupport {
    /// Server of the link; `None` if its address is not known.
    server: Option<SocketAddr>,
    /// True once the server of the link is known not to support persistent watches.
    refused: bool,
    /// True once the server of the link has confirmed that it supports them.
    confirmed: bool,
    refusals: HashMap<Option<SocketAddr>, Timestamp>,
    /// Number of consecutive links lost without an answer.
    unanswered: HashMap<Option<SocketAddr>, u32>,
}

impl PersistentSupport {
    /// Records a new link.
    pub(super) fn linked(&mut self, server: Option<SocketAddr>, now: Timestamp) {
        self.refusals.retain(|_, at| now.since(*at) < REMEMBERED);
        (self.server, self.confirmed) = (server, false);
        self.refused = self.refusals.contains_key(&server);
    }

    /// Returns true if the server of the link is known not to support persistent watches.
    pub(super) fn is_refused(&self) -> bool {
        self.refused
    }

    /// Returns true once the server of the link has confirmed that it supports them.
    pub(super) fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// Records that the server of the link does not support them.
    pub(super) fn refused(&mut self, now: Timestamp) {
        self.refused = true;
        self.unanswered.remove(&self.server);
        self.refusals.insert(self.server, now);
    }

    /// Records that the server of the link supports them.
    pub(super) fn answered(&mut self) {
        self.confirmed = true;
        self.unanswered.remove(&self.server);
    }

    /// Records that the link was lost before the server answered.
    pub(super) fn unanswered(&mut self, now: Timestamp) {
        let links = self.unanswered.entry(self.server).or_default();
        *links += 1;
        if *links >= SUSPICIOUS {
            self.refused(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::default() + Duration::from_secs(seconds)
    }

    fn server(port: u16) -> Option<SocketAddr> {
        Some(SocketAddr::from(([127, 0, 0, 1], port)))
    }

    #[test]
    fn a_refusal_counts_for_its_own_server_and_for_a_time() {
        let mut support = PersistentSupport::default();
        support.linked(server(1), at(0));
        assert!(!support.is_refused());
        support.refused(at(1));
        assert!(support.is_refused());
        support.linked(server(2), at(2));
        assert!(!support.is_refused(), "the link is to another server");
        support.linked(server(1), at(600));
        assert!(support.is_refused());
        support.linked(server(1), at(601));
        assert!(!support.is_refused(), "the server may have been upgraded");
    }

    #[test]
    fn a_server_that_drops_each_link_that_asks_counts_as_refusing() {
        let mut support = PersistentSupport::default();
        support.linked(server(1), at(0));
        support.unanswered(at(0));
        support.linked(server(1), at(1));
        assert!(!support.is_refused(), "a link may be lost for any reason");
        support.answered();
        support.unanswered(at(1));
        support.linked(server(1), at(2));
        assert!(!support.is_refused(), "the server has answered since");
        support.unanswered(at(2));
        support.linked(server(1), at(3));
        assert!(support.is_refused());
    }
}
