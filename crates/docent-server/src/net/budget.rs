//! Bytes that wait in links, and the links that are closed for what they ask of the server.

use super::ensemble::Ensemble;
use super::members::MemberId;
use crate::log::Entry;
use crate::state::{Effects, Refusal};
use docent_proto::DecodeError;
use std::io;
use std::net::SocketAddr;

impl Ensemble {
    /// Checks the bytes that wait in a link, and the events in all of them, after some were added. The link
    /// that has too many is closed: this one, or the one with most events.
    pub(super) fn admit_bytes(&mut self, id: u64) {
        let Some(waiting) = self.links.settle(id) else { return };
        let most = self.limits.queued_bytes_per_connection;
        if let Some(refusal) = Refusal::over("queued_bytes_per_connection", waiting, most) {
            self.expel(id, refusal);
        }
        let (replies, most) = (self.links.replies.used(), self.limits.queued_replies());
        if let Some(refusal) = Refusal::over("queued_bytes / 2", replies, most)
            && planted!(ReadersExpelled)
        {
            self.expel(id, refusal);
        }
        let most = self.limits.queued_events();
        while let Some(refusal) = Refusal::over("queued_bytes / 4", self.links.events(), most) {
            let Some(most_told) = self.links.most_told() else { return };
            self.expel(most_told, refusal);
        }
    }

    /// True while links that were closed have not given back their memory, and there is no room beside them:
    /// nothing more is answered before they did.
    pub(super) fn is_crowded(&self) -> bool {
        let leaving = self.links.leaving();
        leaving > 0 && leaving + self.links.waiting() >= self.limits.queued_bytes
    }

    /// Checks the bytes of messages that wait in followers, before some are added. The link that sent them is
    /// closed if they are too many.
    pub(super) fn admit_held(&mut self, id: u64, bytes: usize) -> bool {
        let held = self.members.held_bytes() + bytes;
        let refusal = Refusal::over("held_bytes", held, self.limits.held_bytes);
        if let Some(refusal) = refusal {
            self.expel(id, refusal);
        }
        refusal.is_none()
    }

    /// Makes room for one more link, if there is one that has no session. False when there is none, and no
    /// room either.
    pub(super) fn make_room(&mut self, peer: SocketAddr) -> bool {
        let Some(refusal) = Refusal::over("connections", self.links.count() + 1, self.limits.connections)
        else {
            return true;
        };
        match self.links.oldest_without_session() {
            Some(id) => self.expel(id, refusal),
            None => self.warn(peer, None, refusal),
        }
        self.links.count() < self.limits.connections
    }

    /// Takes note that the operating system handed no link over. If the process can open no more files, the
    /// oldest link without a session is closed.
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

    /// Closes the links of sessions that had more events than a transaction may have.
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

    /// Closes a link that announced a frame that is too long, or that is none.
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

    /// Closes a link that is over a limit.
    pub(super) fn expel(&mut self, id: u64, refusal: Refusal) {
        self.warn_link(id, refusal);
        self.cut(id);
    }

    /// Closes a link whose client does not read, while others wait for the memory of its replies.
    pub(super) fn expel_stalled(&mut self, id: u64) {
        if let Some((peer, session)) = self.links.get(id).map(|link| (link.peer, link.session))
            && let Some(unsaid) = self.warnings.pass(self.clock.now_ms())
        {
            self.log.push(Entry::Stalled { peer, session, unsaid });
        }
        self.cut(id);
    }

    /// Says which limit a link met.
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

/// True for the errors of Unix for too many open files, in the system or in the process.
fn is_out_of_files(error: &io::Error) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    matches!(error.raw_os_error(), Some(ENFILE | EMFILE))
}
