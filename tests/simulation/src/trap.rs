use docent_proto::{OpCode, Request};

/// A trap for the n-th request of a kind, counted from when the trap was set. It has one effect, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trap {
    bait: Bait,
    remaining: u32,
    effect: Effect,
}

/// The requests that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bait {
    /// All requests except pings.
    Any,
    /// Requests of one operation.
    Op(OpCode),
    /// Requests that open or resume a session.
    Handshake,
    /// Not requests but events: each event that follows another one directly.
    NextEvent,
}

/// Effect of a trap on a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The link is reset before the request is sent.
    ResetBefore,
    /// The link is reset instead of delivering the reply.
    ResetAfter,
    /// The reply is lost; the link stays up.
    Swallow,
}

impl Trap {
    /// Creates a trap for the `nth` request, counted from 1.
    pub(crate) fn new(bait: Bait, nth: u32, effect: Effect) -> Self {
        Self { bait, remaining: nth.max(1), effect }
    }

    pub(crate) fn effect(&self) -> Effect {
        self.effect
    }

    /// Counts a request. Returns true if it triggers the trap.
    pub(crate) fn meets(&mut self, request: Option<&Request>) -> bool {
        let counts = match (self.bait, request) {
            (Bait::Handshake, None) => true,
            (Bait::Any, Some(request)) => *request != Request::Ping,
            (Bait::Op(op), Some(request)) => request.op() == op,
            _ => false,
        };
        self.count(counts)
    }

    /// Counts an event that follows another one directly. Returns true if it triggers the trap.
    pub(crate) fn meets_next_event(&mut self) -> bool {
        self.count(self.bait == Bait::NextEvent)
    }

    fn count(&mut self, counts: bool) -> bool {
        self.remaining -= u32::from(counts);
        counts && self.remaining == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get() -> Request {
        Request::GetData { path: "/a".into(), watch: false }
    }

    #[test]
    fn a_trap_waits_for_the_nth_request_of_its_kind() {
        let mut trap = Trap::new(Bait::Op(OpCode::GetData), 2, Effect::Swallow);
        let sync = Request::Sync { path: "/a".into() };
        let met = [Some(&get()), Some(&sync), None, Some(&get())].map(|request| trap.meets(request));
        assert_eq!(met, [false, false, false, true]);
    }

    #[test]
    fn a_trap_between_two_events_is_met_by_no_request() {
        let mut trap = Trap::new(Bait::NextEvent, 2, Effect::ResetAfter);
        let met =
            [trap.meets_next_event(), trap.meets(Some(&get())), trap.meets(None), trap.meets_next_event()];
        assert_eq!(met, [false, false, false, true]);
        assert!(!Trap::new(Bait::Any, 1, Effect::ResetAfter).meets_next_event());
    }

    #[test]
    fn pings_are_no_requests_and_handshakes_are_apart() {
        let mut any = Trap::new(Bait::Any, 1, Effect::ResetBefore);
        assert_eq!([Some(&Request::Ping), None, Some(&get())].map(|r| any.meets(r)), [false, false, true]);
        let mut handshake = Trap::new(Bait::Handshake, 1, Effect::ResetAfter);
        assert_eq!([Some(&get()), None].map(|request| handshake.meets(request)), [false, true]);
    }
}
