//! Requests above the servers' limit. A server closes the link without a reply when it reads the length of
//! such a frame. At first, the client cannot distinguish this from any other lost link.

use super::Machine;
use crate::session::Cause;
use crate::time::Timestamp;
use docent_proto::{Request, RequestFrame};
use std::time::Duration;

/// Smallest size in bytes that is ever suspected: a server with a lower limit would be useless.
const LEAST: usize = 64 * 1024;

/// Number of consecutive links that servers close on a request before it counts as too large.
const ENOUGH: u32 = 2;

/// Suspicion that servers do not accept requests of a certain size.
#[derive(Debug, Default)]
pub(super) struct Suspect {
    /// Size of the largest request that was answered in this session.
    taken: usize,
    /// Size of the suspected request.
    size: usize,
    /// Number of consecutive links that servers closed on that request; 0 if nothing is suspected.
    links: u32,
    /// Time at which the last of these links was closed.
    closed_at: Timestamp,
    /// Size of the smallest request that counts as too large, and the time at which a server last closed the
    /// link on such a request.
    too_large: Option<(usize, Timestamp)>,
}

impl Suspect {
    /// Records that a request of `size` bytes was answered.
    pub(super) fn answered(&mut self, size: usize) {
        self.taken = self.taken.max(size);
        if size >= self.size {
            self.links = 0;
        }
        self.too_large = self.too_large.filter(|(least, _)| size < *least);
    }

    /// Records that a server closed a link on which a request of `size` bytes was the largest.
    fn hung_up(&mut self, size: usize, now: Timestamp, timeout: Duration) {
        if size < LEAST || size <= self.taken || planted!(TooLargeForEver) {
            return;
        }
        // If a long time lies between two lost links, the cause is another one.
        let is_next = size == self.size && now.since(self.closed_at) < timeout;
        self.links = if is_next { self.links.saturating_add(1) } else { 1 };
        (self.size, self.closed_at) = (size, now);
        let fresh = self.too_large.filter(|(_, at)| now.since(*at) < timeout);
        // A size that already counted as too large needs no second link.
        let is_known_size = self.too_large.is_some_and(|(least, _)| size == least);
        if self.links >= ENOUGH || is_known_size || fresh.is_some_and(|(least, _)| size >= least) {
            self.too_large = Some((fresh.map_or(size, |(least, _)| least.min(size)), now));
        }
    }
}

impl Machine {
    /// Records that the server closed the link; called before [`disconnected`](Self::disconnected). Servers
    /// close the link immediately on a request that is too large, so a request sent long ago is not the
    /// cause.
    pub(in crate::session) fn hung_up(&mut self, now: Timestamp) {
        self.suspect_operation(now);
        let pulse = self.timing().pulse();
        let recent = |sent_at| now.since(sent_at) <= pulse;
        let sent = self.requests.in_flight.iter().filter(|in_flight| recent(in_flight.sent_at));
        if let Some(largest) = sent.map(|in_flight| in_flight.size).max() {
            self.suspect.hung_up(largest, now, self.timeout);
        }
    }

    /// Returns the cause for which `request` is not sent: servers closed the link on requests of its size.
    /// After a timeout such a request is tried again, in case the suspicion was wrong.
    pub(in crate::session) fn too_large_for_servers(
        &self,
        request: &Request,
        now: Timestamp,
    ) -> Option<Cause> {
        let (least, _) = self.suspect.too_large.filter(|(_, at)| now.since(*at) < self.timeout)?;
        // Apart from its paths and data, a request has only a few bytes for each part.
        if request.payload_len() < LEAST / 2 {
            return None;
        }
        let mut frame = Vec::new();
        RequestFrame::encode_parts(0, request, &mut frame);
        let size = frame.len() - 4;
        (size >= least).then_some(Cause::TooLarge { size, limit: self.settings.outbound_limit })
    }
}
