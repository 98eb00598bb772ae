use super::lane::Flow;
use super::rule::{Reaction, Rule};
use super::state::State;
use super::trace::{Direction, Fate, FrameKind, Traced};
use bytes::{Buf, Bytes, BytesMut};
use docent_proto::{
    ConnectRequest, ConnectResponse, MultiOp, OpCode, Record, ReplyHeader, Request, RequestFrame, WatchEvent,
    xid,
};
use std::collections::VecDeque;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// Size of a [`ReplyHeader`] in bytes.
const HEADER: usize = 16;

/// State of one link that matches replies to requests and their rules.
#[derive(Debug)]
pub(super) struct Tap {
    link: u64,
    client_connected: bool,
    server_connected: bool,
    pending: VecDeque<Pending>,
}

#[derive(Debug)]
struct Pending {
    xid: i32,
    op: Option<OpCode>,
    path: Option<String>,
    rule: Option<Rule>,
}

/// What to do with a frame of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Forward,
    Swallow,
    Reset,
}

impl Tap {
    pub(super) fn new(link: u64) -> Self {
        Self { link, client_connected: false, server_connected: false, pending: VecDeque::new() }
    }

    /// Returns the frame that the server gets in place of a client's frame.
    pub(super) fn edit(&self, frame: Bytes, state: &State) -> Bytes {
        let longest = *state.longest_timeout.lock().unwrap_or_else(PoisonError::into_inner);
        let (false, Some(longest)) = (self.client_connected, longest) else { return frame };
        let Ok(mut request) = ConnectRequest::decode(frame.clone()) else { return frame };
        let longest = i32::try_from(longest.as_millis()).unwrap_or(i32::MAX);
        request.timeout_ms = request.timeout_ms.min(longest);
        let mut out = BytesMut::new();
        request.write(&mut out);
        out.freeze()
    }

    /// Records a frame of the client when it arrives. Returns its index in the trace; `None` if the link must
    /// be reset in place of forwarding the frame.
    pub(super) fn request(&mut self, frame: &Bytes, state: &State) -> Option<usize> {
        let mut traced = self.traced(Direction::ToServer, FrameKind::Connect, frame);
        if !self.client_connected {
            self.client_connected = true;
            return Some(state.record(traced));
        }
        let Ok(number) = frame.clone().try_get_i32() else {
            traced.kind = FrameKind::Raw;
            return Some(state.record(traced));
        };
        let request = RequestFrame::decode(frame.clone()).ok().map(|frame| frame.request);
        traced.kind = FrameKind::Request;
        traced.xid = Some(number);
        traced.op = request.as_ref().map(Request::op);
        traced.path = request.as_ref().and_then(path).map(str::to_owned);
        let rule = request.as_ref().and_then(|request| state.rule_for(request));
        if let Some(rule) = rule.as_ref().filter(|rule| rule.reaction() == Reaction::ResetBefore) {
            traced.fate = Fate::Swallowed;
            state.record(traced);
            rule.fire();
            return None;
        }
        let rule = match rule {
            Some(rule) if rule.reaction() == Reaction::Hold => {
                state.settings(Direction::ToServer).send_modify(|settings| settings.flow = Flow::Hold);
                rule.fire();
                None
            }
            rule => rule,
        };
        self.pending.push_back(Pending { xid: number, op: traced.op, path: traced.path.clone(), rule });
        Some(state.record(traced))
    }

    /// Records a frame of the server when it is sent on, or when it is swallowed for a reason other than a
    /// rule.
    pub(super) fn reply(&mut self, frame: &Bytes, swallowed: bool, state: &State) -> Verdict {
        let (mut traced, rule) = self.understand(frame, state);
        let ends = traced.kind == FrameKind::Event && !swallowed && state.resets_at_event();
        if swallowed || rule.is_some() || ends {
            traced.fate = Fate::Swallowed;
        }
        let verdict = match rule.as_ref().map(Rule::reaction) {
            Some(Reaction::ResetBefore | Reaction::ResetAfter) => Verdict::Reset,
            Some(Reaction::CutAfter) => {
                state.refuses.store(true, Ordering::SeqCst);
                Verdict::Reset
            }
            Some(Reaction::SwallowReply) => Verdict::Swallow,
            None if ends => Verdict::Reset,
            None if swallowed => Verdict::Swallow,
            None | Some(Reaction::Hold) => Verdict::Forward,
        };
        state.record(traced);
        if let Some(rule) = rule {
            rule.fire();
        }
        verdict
    }

    /// Decodes a frame of the server, and finds the rule that waits for it.
    fn understand(&mut self, frame: &Bytes, state: &State) -> (Traced, Option<Rule>) {
        let mut traced = self.traced(Direction::ToClient, FrameKind::Connect, frame);
        if !self.server_connected {
            self.server_connected = true;
            if let Ok(response) = ConnectResponse::decode(frame.clone()) {
                state.sessions.remember(&response);
            }
            return (traced, None);
        }
        let mut body = frame.clone();
        let Ok(header) = ReplyHeader::decode(body.split_to(HEADER.min(body.len()))) else {
            traced.kind = FrameKind::Raw;
            return (traced, None);
        };
        (traced.xid, traced.zxid) = (Some(header.xid), Some(header.zxid));
        if header.xid == xid::NOTIFICATION {
            traced.kind = FrameKind::Event;
            if let Ok(event) = WatchEvent::decode(body) {
                (traced.event, traced.path) = (Some(event.kind), Some(event.path));
            }
            return (traced, None);
        }
        (traced.kind, traced.code) = (FrameKind::Reply, Some(header.code));
        let index = self.pending.iter().position(|pending| pending.xid == header.xid);
        let Some(pending) = index.and_then(|index| self.pending.remove(index)) else { return (traced, None) };
        (traced.op, traced.path) = (pending.op, pending.path);
        (traced, pending.rule)
    }

    fn traced(&self, direction: Direction, kind: FrameKind, frame: &Bytes) -> Traced {
        Traced::new(self.link, direction, kind, frame.len())
    }
}

/// Returns the node that a request concerns. For a multi, this is the first node that is not the marker of an
/// exact write.
fn path(request: &Request) -> Option<&str> {
    match request {
        Request::Multi(ops) => ops.iter().map(MultiOp::path).find(|path| !path.contains("/_docent")),
        other => other.path(),
    }
}
