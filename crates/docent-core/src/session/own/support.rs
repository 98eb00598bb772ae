use crate::time::Timestamp;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Time after which a server that has no persistent watches is asked again, on a new link: it may have been
/// upgraded.
const REMEMBERED: Duration = Duration::from_secs(600);

/// Links in a row that a server lets go without an answer to the request for a persistent watch, until that
/// is taken for a refusal. Servers before 3.6 answer and then close the link; the answer may be lost.
const SUSPICIOUS: u32 = 2;

/// Knowledge about which servers have persistent watches. In an ensemble that is being upgraded some do.
#[derive(Debug, Default)]
pub(super) struct PersistentSupport {
    /// Server of the link; `None` where its address is not known.
    server: Option<SocketAddr>,
    /// True once the server of the link is known not to have them.
    refused: bool,
    /// True once the server of the link has answered that it has them.
    confirmed: bool,
    refusals: HashMap<Option<SocketAddr>, Timestamp>,
    /// Links lost without an answer, in a row.
    unanswered: HashMap<Option<SocketAddr>, u32>,
}

impl PersistentSupport {
    /// Takes note of a new link.
    pub(super) fn linked(&mut self, server: Option<SocketAddr>, now: Timestamp) {
        self.refusals.retain(|_, at| now.since(*at) < REMEMBERED);
        (self.server, self.confirmed) = (server, false);
        self.refused = self.refusals.contains_key(&server);
    }

    /// True when the server of the link is known not to have persistent watches.
    pub(super) fn is_refused(&self) -> bool {
        self.refused
    }

    /// True once the server of the link has answered that it has them.
    pub(super) fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// Takes note that the server of the link does not have them.
    pub(super) fn refused(&mut self, now: Timestamp) {
        self.refused = true;
        self.unanswered.remove(&self.server);
        self.refusals.insert(self.server, now);
    }

    /// Takes note that it has them.
    pub(super) fn answered(&mut self) {
        self.confirmed = true;
        self.unanswered.remove(&self.server);
    }

    /// Takes note that the link was lost while it was asked.
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
        assert!(!support.is_refused(), "another server");
        support.linked(server(1), at(600));
        assert!(support.is_refused());
        support.linked(server(1), at(601));
        assert!(!support.is_refused(), "it may have been upgraded");
    }

    #[test]
    fn a_server_that_lets_go_of_each_link_that_asks_is_not_asked_for_ever() {
        let mut support = PersistentSupport::default();
        support.linked(server(1), at(0));
        support.unanswered(at(0));
        support.linked(server(1), at(1));
        assert!(!support.is_refused(), "a link may be lost for any reason");
        support.answered();
        support.unanswered(at(1));
        support.linked(server(1), at(2));
        assert!(!support.is_refused(), "it has answered since");
        support.unanswered(at(2));
        support.linked(server(1), at(3));
        assert!(support.is_refused());
    }
}
