use super::ensemble::Ensemble;
use super::members::MemberId;
use super::traffic::{Answered, Totals};
use docent_proto::OpCode;

/// An answer whose latency is counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timed {
    /// The request's xid.
    pub(super) xid: i32,
    /// Short name of the operation.
    pub(super) op: &'static str,
}

impl Timed {
    /// The answer to a handshake that opened a session.
    pub(super) const OPENED: Self = Self { xid: 0, op: "SESS" };

    /// Creates the value for the answer to operation `op`; `None` for credentials, which ZooKeeper answers
    /// before it measures latencies.
    pub(super) fn answer(xid: i32, op: i32, failed: bool) -> Option<Self> {
        let is_auth = OpCode::from_number(op) == Ok(OpCode::Auth);
        (!is_auth).then(|| Self { xid, op: short_name(op, failed) })
    }
}

impl Ensemble {
    /// Counts a frame or a four-letter word received on a link.
    pub(super) fn count_received(&mut self, id: u64, bytes: usize, now: i64) {
        let Some(link) = self.links.get_mut(id) else { return };
        link.activity.traffic.received += 1;
        link.activity.heard_ms = now;
        let member = link.member;
        self.count(member, |totals| {
            totals.traffic.received += 1;
            totals.bytes_received += bytes as u64;
        });
    }

    /// Counts work done for a link.
    pub(super) fn count_work(&mut self, id: u64, units: usize) {
        if let Some(link) = self.links.get_mut(id) {
            link.work += units;
        }
    }

    /// Counts a frame queued for a link. `reply` is its length if it is a reply.
    pub(super) fn count_sent(&mut self, id: u64, reply: Option<usize>) {
        let Some(link) = self.links.get_mut(id) else { return };
        link.activity.traffic.sent += 1;
        let member = link.member;
        self.count(member, |totals| {
            totals.traffic.sent += 1;
            if let Some(bytes) = reply {
                totals.replied(bytes);
            }
        });
    }

    /// Records the latency of an answer. The link may have been closed in the meantime.
    pub(super) fn count_latency(&mut self, id: u64, timed: Timed, began: i64, done: i64) {
        let took_ms = u64::try_from(done - began).unwrap_or(0);
        let Some(member) = self.links.get(id).map(|link| link.member) else { return };
        self.count(member, |totals| totals.traffic.latency.add(took_ms));
        let zxid = self.state_seen_by(member).zxid();
        if let Some(link) = self.links.get_mut(id) {
            link.activity.answered(timed.xid, Answered { op: timed.op, zxid, at_ms: done, took_ms });
        }
    }

    pub(super) fn count(&mut self, member: MemberId, count: impl FnOnce(&mut Totals)) {
        if let Some(totals) = self.members.totals_mut(member) {
            count(totals);
        }
    }
}

/// Returns the name of an operation as ZooKeeper prints it. A write that failed is printed as `NA`.
fn short_name(op: i32, failed: bool) -> &'static str {
    match op {
        3 => "EXIS",
        4 => "GETD",
        6 => "GETA",
        8 | 12 => "GETC",
        9 => "SYNC",
        11 => "PING",
        14 => "MULT",
        17 => "CHKW",
        18 => "REMW",
        22 => "MLTR",
        101 => "SETW",
        103 => "GETE",
        104 => "GETACN",
        105 => "STW2",
        106 => "ADDW",
        107 => "HOMI",
        -11 => "CLOS",
        _ if failed => "NA",
        1 | 15 | 19 | 21 => "CREA",
        2 => "DELE",
        5 => "SETD",
        7 => "SETA",
        13 => "CHEC",
        16 => "RECO",
        _ => "NA",
    }
}
