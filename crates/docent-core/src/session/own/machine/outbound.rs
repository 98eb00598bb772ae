//! Frames to the server.

use super::{Link, Machine};
use crate::session::abilities::Ability;
use crate::session::ephemerals::MAX_DOUBTS;
use crate::session::requests::{InFlight, OWN, Phase, Queued, WatchRequest};
use crate::session::{Lane, Outcome, Reply, WatchKind};
use crate::time::Timestamp;
use bytes::Bytes;
use docent_proto::{ConnectRequest, OpCode, Record, Request, RequestFrame, write_frame, xid};
use secrecy::ExposeSecret;
use std::mem;
use std::sync::Arc;

/// Above this many bytes of output, requests stay in the queue, where they can still be withdrawn.
const OUTPUT_WATERMARK: usize = 32 * 1024;

impl Machine {
    /// Begins the handshake on a new connection to a server; it must finish by `until`.
    pub(in crate::session) fn connected(&mut self, now: Timestamp, until: Timestamp, out: &mut Vec<u8>) {
        self.link = Link::Handshake { sent_at: now, until };
        self.last_sent = now;
        self.last_received = now;
        let key = self.key.as_ref();
        let request = ConnectRequest {
            last_zxid_seen: if planted!(OlderAfterNewer) { 0 } else { self.seen_zxid },
            timeout_ms: i32::try_from(self.settings.timeout.as_millis()).unwrap_or(i32::MAX),
            session_id: key.map_or(0, |key| key.id),
            password: key.map_or_else(
                || Bytes::from_static(&[0; 16]),
                |key| Bytes::copy_from_slice(key.password.expose_secret()),
            ),
            read_only: Some(self.asks_read_only),
        };
        write_frame(out, |out| request.write(out));
    }

    /// Appends what can be sent now to `out`. Returns true if there is more that did not fit.
    ///
    /// Requests that depend on received events wait, together with those behind them, until the link
    /// `is_drained`, that is, until everything received has been processed.
    pub(in crate::session) fn write(&mut self, now: Timestamp, is_drained: bool, out: &mut Vec<u8>) -> bool {
        if self.ended().is_some() {
            return false;
        }
        if self.to_authenticate || self.sasl.is_some() {
            self.write_authentication(now, out);
        }
        // Nothing more is sent on a stale link, even before `tick` abandons it, because a write over it would
        // prove little (decision 3).
        if self.link != Link::Attached || self.is_stale(now) {
            return false;
        }
        self.write_restore(now, out);
        while let Some(queued) = self.requests.ahead.pop_front() {
            self.send(now, queued, out);
        }
        while out.len() < OUTPUT_WATERMARK
            && (is_drained || !self.requests.is_next_tied())
            && !self.waits_for_probe(now, out)
            && let Some(queued) = self.requests.queue.pop_front()
        {
            self.send(now, queued, out);
            self.write_restore(now, out);
        }
        let waits = self.waits_for_probe(now, out);
        let is_last = self.requests.queue.is_empty() && !waits;
        if self.phase == Phase::Closing && is_last && !mem::replace(&mut self.is_close_written, true) {
            self.send(now, Queued::own(Request::CloseSession), out);
        }
        if now >= self.last_sent + self.timing().pulse() {
            RequestFrame::encode_parts(xid::PING, &Request::Ping, out);
            self.pings.push_back(now);
            self.last_sent = now;
            // Nothing was sent for a while.
            self.requests.release();
        }
        !self.requests.queue.is_empty() && !waits
    }

    fn write_restore(&mut self, now: Timestamp, out: &mut Vec<u8>) {
        while let Some(request) = self.restore.pop_front() {
            self.send(now, Queued::own(request), out);
        }
    }

    pub(super) fn send(&mut self, now: Timestamp, queued: Queued, out: &mut Vec<u8>) {
        let Queued { id, mut request, lane, deadline, done } = queued;
        let xid = match request.op() {
            OpCode::SetWatches | OpCode::SetWatches2 if id == OWN => xid::SET_WATCHES,
            _ => self.next_xid(),
        };
        // The session's own requests must be sent, and so must heartbeats.
        let too_large = || self.too_large_for_servers(&request, now).filter(|_| lane != Lane::Lease);
        let done = match done.map(|done| (done, too_large())) {
            Some((done, Some(cause))) => {
                return self.deliveries.finished.push((done, Outcome::NotSent(cause)));
            }
            done => done.map(|(done, _)| done),
        };
        let statless = match self.adapt(&mut request) {
            Ok(statless) => statless,
            Err(code) => {
                let reply = Reply::new(Err(code), self.last_zxid);
                self.deliveries.finished.extend(done.map(|done| (done, Outcome::Reply(reply))));
                return;
            }
        };
        let ability = Ability::of(&request);
        let ephemerals = match self.ephemerals.send(&request, lane) {
            Ok(change) => change,
            Err(cause) => {
                self.deliveries.finished.extend(done.map(|done| (done, Outcome::NotSent(cause))));
                self.doubt_ephemerals();
                return;
            }
        };
        // Watches restored on a new link have no waiting caller. Their subscribers are already registered.
        let watch = done.is_some().then(|| WatchRequest::of(&request)).flatten();
        let subscribers = match &watch {
            Some(WatchRequest::Data(paths)) => {
                paths.iter().map(|path| self.watches.register(Arc::clone(path), WatchKind::Data)).collect()
            }
            _ => Vec::new(),
        };
        let sets_persistent = ability == Some(Ability::PersistentWatches);
        let is_served =
            (sets_persistent || !self.persistent.at_server.is_empty()) && self.note_persistent(&mut request);
        let is_by_name = matches!(request, Request::Delete { version: -1, .. });
        let repeatable = lane == Lane::Cleanup && is_by_name;
        let before = out.len();
        RequestFrame::encode_parts(xid, &request, out);
        self.last_sent = now;
        self.requests.in_flight.push_back(InFlight {
            id,
            xid,
            op: request.op(),
            size: out.len() - before - 4,
            sent_at: now,
            leader_contact: self.leader_contact.by(now),
            is_write: request.is_write(),
            lane,
            watch,
            subscribers,
            is_served,
            ephemerals,
            ability,
            statless,
            deadline,
            done,
            // A delete of a node whose name only this client uses can be repeated, and must stay ahead of the
            // requests submitted after it.
            repeat: (repeatable && !planted!(FailedDeleteForgotten)).then_some(request),
        });
    }

    /// Checks whether the counted ephemeral nodes still exist, some at a time.
    fn doubt_ephemerals(&mut self) {
        if self.doubts.is_none() {
            for check in self.ephemerals.doubt(MAX_DOUBTS) {
                // Replies arrive in order, so the last request stands for all of them.
                self.doubts = Some(self.requests.push(check, Lane::Cleanup, None, None));
            }
        }
    }

    pub(super) fn next_xid(&mut self) -> i32 {
        let xid = self.next_xid;
        self.next_xid = xid.checked_add(1).unwrap_or(1);
        xid
    }
}
