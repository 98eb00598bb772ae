//! Requests above the servers' limit. A server closes the link when it reads the length of such a frame, and
//! says nothing: the client cannot tell it from any other lost link, at first.

use super::Machine;
use crate::session::Cause;
use crate::time::Timestamp;
use docent_proto::{Request, RequestFrame};
use std::time::Duration;

/// Requests of fewer bytes are never under suspicion: no server is useful with so low a limit.
const LEAST: usize = 64 * 1024;

/// Number of links in a row that servers close on a request before it counts as too large.
const ENOUGH: u32 = 2;

/// Suspicion that servers do not take requests of a size.
#[derive(Debug, Default)]
pub(super) struct Suspect {
    /// Size of the largest request that was answered in this session.
    taken: usize,
    /// Size of the request under suspicion.
    size: usize,
    /// Number of links in a row that servers closed on it; 0 when nothing is under suspicion.
    links: u32,
    /// Time of the last of them.
    closed_at: Timestamp,
    /// Size of the smallest request that counts as too large, and the time at which a server last closed the
    /// link on such a one.
    too_large: Option<(usize, Timestamp)>,
}

impl Suspect {
    /// A request of `size` bytes was answered.
    pub(super) fn answered(&mut self, size: usize) {
        self.taken = self.taken.max(size);
        if size >= self.size {
            self.links = 0;
        }
        self.too_large = self.too_large.filter(|(least, _)| size < *least);
    }

    /// A server closed the link, on which a request of `size` bytes was the largest.
    fn hung_up(&mut self, size: usize, now: Timestamp, timeout: Duration) {
        if size < LEAST || size <= self.taken || planted!(TooLargeForEver) {
            return;
        }
        // Links that are lost long after one another have other reasons.
        let is_next = size == self.size && now.since(self.closed_at) < timeout;
        self.links = if is_next { self.links.saturating_add(1) } else { 1 };
        (self.size, self.closed_at) = (size, now);
        let fresh = self.too_large.filter(|(_, at)| now.since(*at) < timeout);
        // One that was tried again needs no second link.
        let again = self.too_large.is_some_and(|(least, _)| size == least);
        if self.links >= ENOUGH || again || fresh.is_some_and(|(least, _)| size >= least) {
            self.too_large = Some((fresh.map_or(size, |(least, _)| least.min(size)), now));
        }
    }
}

impl Machine {
    /// Takes note that the server closed the link, before [`disconnected`](Self::disconnected) does. Servers
    /// close at once on a request that is too large: one that was sent long ago is not why.
    pub(in crate::session) fn hung_up(&mut self, now: Timestamp) {
        let pulse = self.timing().pulse();
        let recent = |sent_at| now.since(sent_at) <= pulse;
        let sent = self.requests.in_flight.iter().filter(|in_flight| recent(in_flight.sent_at));
        if let Some(largest) = sent.map(|in_flight| in_flight.size).max() {
            self.suspect.hung_up(largest, now, self.timeout);
        }
    }

    /// The cause for which `request` is not sent: servers closed the link on requests of its size. After a
    /// timeout one is tried again, in case the suspicion was wrong.
    pub(in crate::session) fn too_large_for_servers(
        &self,
        request: &Request,
        now: Timestamp,
    ) -> Option<Cause> {
        let (least, _) = self.suspect.too_large.filter(|(_, at)| now.since(*at) < self.timeout)?;
        // Paths and data are all of a request but some bytes for each part.
        if request.payload_len() < LEAST / 2 {
            return None;
        }
        let mut frame = Vec::new();
        RequestFrame::encode_parts(0, request, &mut frame);
        let size = frame.len() - 4;
        (size >= least).then_some(Cause::TooLarge { size, limit: self.settings.outbound_limit })
    }
}
