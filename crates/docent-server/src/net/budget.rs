//! Limits on the bytes queued in links, and on what links may request. A link that exceeds a limit is closed.

use super::ensemble::Ensemble;
use super::members::MemberId;
use crate::log::Entry;
use crate::state::{Effects, Refusal};
use docent_proto::DecodeError;
use std::io;
use std::net::SocketAddr;

impl Ensemble {
    /// Checks the bytes queued in a link, and the events queued in all links, after bytes were added. Closes
    /// the link if it holds too many bytes, or the link with the most event bytes if all links together hold
    /// too many.
    pub(super) fn admit_bytes(&mut self, id: u64) {
        let Some(waiting) = self.links.settle(id) else { return };
        let most = self.limits.queued_bytes_per_connection;
        if let Some(refusal) = Refusal::over_limit("queued_bytes_per_connection", waiting, most) {
            self.expel(id, refusal);
        }
        let (replies, most) = (self.links.replies.used(), self.limits.queued_replies());
        if let Some(refusal) = Refusal::over_limit("queued_bytes / 2", replies, most)
            && planted!(ReadersExpelled)
        {
            self.expel(id, refusal);
        }
        let most = self.limits.queued_events();
        while let Some(refusal) = Refusal::over_limit("queued_bytes / 4", self.links.events(), most) {
            let Some(most_notified) = self.links.most_notified() else { return };
            self.expel(most_notified, refusal);
        }
    }

    /// Returns whether links that were closed still hold memory, and no room is left besides it. Nothing is
    /// answered until they release that memory.
    pub(super) fn is_crowded(&self) -> bool {
        let leaving = self.links.leaving();
        leaving > 0 && leaving + self.links.waiting() >= self.limits.queued_bytes
    }

    /// Checks the bytes of messages held by followers, before some are added. If they exceed the limit,
    /// closes the link that sent the message and returns `false`.
    pub(super) fn admit_held(&mut self, id: u64, bytes: usize) -> bool {
        let held = self.members.held_bytes() + bytes;
        let refusal = Refusal::over_limit("held_bytes", held, self.limits.held_bytes);
        if let Some(refusal) = refusal {
            self.expel(id, refusal);
        }
        refusal.is_none()
    }

    /// Makes room for one more link, closing the oldest link without a session if necessary. Returns `false`
    /// if there is no room.
    pub(super) fn make_room(&mut self, peer: SocketAddr) -> bool {
        let Some(refusal) =
            Refusal::over_limit("connections", self.links.count() + 1, self.limits.connections)
        else {
            return true;
        };
        match self.links.oldest_without_session() {
            Some(id) => self.expel(id, refusal),
            None => self.warn(peer, None, refusal),
        }
        self.links.count() < self.limits.connections
    }

    /// Records that the operating system failed to accept a connection. If the process has too many open
    /// files, closes the oldest link without a session.
    pub(super) fn not_accepted(&mut self, error: io::Error) {
        if is_out_of_files(&error) {
            self.expel_without_session();
        }
        if let Some(unsaid) = self.failures.pass(self.clock.now_ms()) {
            self.log.push(Entry::NotAccepted { error, unsaid });
        }
    }

    fn expel_without_session(&mut self) {
        let count = self.links.count();
        if let Some(id) = self.links.oldest_without_session() {
            self.expel(id, Refusal { rule: "open files", value: count + 1, limit: count });
        }
    }

    /// Closes the links of sessions for which a transaction had too many events.
    pub(super) fn expel_flooded(&mut self, world: MemberId, effects: &Effects) {
        let most = self.limits.events_per_transaction;
        for session in effects.events.missing().chain(effects.later.missing()) {
            let refusal =
                Refusal { rule: "events_per_transaction", value: most.saturating_add(1), limit: most };
            if let Some(id) = self.links.of_session(world, session) {
                self.expel(id, refusal);
            }
        }
    }

    /// Closes a link that announced a frame that is too long or invalid.
    pub(super) fn refuse_frame(&mut self, id: u64, error: DecodeError) {
        if let Some(member) = self.links.get(id).map(|link| link.member) {
            self.count(member, |totals| totals.frames_refused += 1);
        }
        if let DecodeError::FrameLength { length, limit } = error
            && let Ok(value) = usize::try_from(length)
        {
            self.expel(id, Refusal { rule: "frame_bytes", value, limit });
        }
        self.log.push(Entry::NoFrame(error));
        self.cut(id);
    }

    /// Closes a link that exceeded a limit.
    pub(super) fn expel(&mut self, id: u64, refusal: Refusal) {
        self.warn_link(id, refusal);
        self.cut(id);
    }

    /// Closes a link whose client does not read, while other links wait for the memory of its replies.
    pub(super) fn expel_stalled(&mut self, id: u64) {
        if let Some((peer, session)) = self.links.get(id).map(|link| (link.peer, link.session))
            && let Some(unsaid) = self.warnings.pass(self.clock.now_ms())
        {
            self.log.push(Entry::Stalled { peer, session, unsaid });
        }
        self.cut(id);
    }

    /// Logs which limit a link exceeded.
    pub(super) fn warn_link(&mut self, id: u64, refusal: Refusal) {
        let now = self.clock.now_ms();
        let Some(link) = self.links.get_mut(id) else { return };
        let (peer, session) = (link.peer, link.session);
        if link.warnings.pass(now).is_some() {
            self.warn(peer, session, refusal);
        }
    }

    fn warn(&mut self, peer: SocketAddr, session: Option<i64>, refusal: Refusal) {
        if let Some(unsaid) = self.warnings.pass(self.clock.now_ms()) {
            self.log.push(Entry::Refused { refusal, peer, session, unsaid });
        }
    }
}

/// Returns whether the error is Unix's "too many open files", in the process or in the system.
fn is_out_of_files(error: &io::Error) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    matches!(error.raw_os_error(), Some(ENFILE | EMFILE))
}
