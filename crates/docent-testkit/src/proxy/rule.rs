use docent_proto::{MultiOp, OpCode, Request};
use docent_server::Armed;
use std::fmt;
use tokio::sync::watch;

/// The request that triggers a [`Rule`]: the n-th one with an operation that meets all conditions.
#[must_use]
pub struct On {
    op: Option<OpCode>,
    conditions: Vec<Condition>,
    nth: usize,
}

type Condition = Box<dyn Fn(&Request) -> bool + Send>;

/// A rule by which a [`Proxy`](super::Proxy) acts on one request, once.
///
/// ```
/// use docent_proto::OpCode;
/// use docent_testkit::internals::Rule;
///
/// let lost = Rule::on(OpCode::Create2).path(|path| path.starts_with("/locks/")).nth(2).swallow_reply();
/// ```
#[must_use]
pub struct Rule {
    on: On,
    reaction: Reaction,
    fired: watch::Sender<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reaction {
    SwallowReply,
    ResetBefore,
    ResetAfter,
    CutAfter,
    Hold,
}

impl Rule {
    /// Selects the first request with operation `op`.
    pub fn on(op: OpCode) -> On {
        On { op: Some(op), conditions: Vec::new(), nth: 1 }
    }

    /// Selects the first request with any operation.
    pub fn on_any() -> On {
        On { op: None, conditions: Vec::new(), nth: 1 }
    }

    pub(super) fn armed(&self) -> Armed {
        Armed::new(&self.fired)
    }

    /// Counts a request if it matches. Returns `true` if the request triggers the rule; this may be a later
    /// one if another rule acted on the n-th.
    pub(super) fn meets(&mut self, request: &Request) -> bool {
        if !self.on.matches(request) {
            return false;
        }
        self.on.nth = self.on.nth.saturating_sub(1);
        self.on.nth == 0
    }

    pub(super) fn reaction(&self) -> Reaction {
        self.reaction
    }

    pub(super) fn fire(&self) {
        self.fired.send_replace(true);
    }
}

impl On {
    /// Only counts requests with a path that meets `condition`, including the paths in a multi.
    pub fn path(self, condition: impl Fn(&str) -> bool + Send + 'static) -> Self {
        self.when(move |request| match request {
            Request::Multi(ops) | Request::MultiRead(ops) => ops.iter().map(MultiOp::path).any(&condition),
            other => other.path().is_some_and(&condition),
        })
    }

    /// Only counts requests that meet `condition`.
    pub fn when(mut self, condition: impl Fn(&Request) -> bool + Send + 'static) -> Self {
        self.conditions.push(Box::new(condition));
        self
    }

    /// Selects the `nth` such request instead of the first, counted from 1 after the rule is added.
    ///
    /// # Panics
    /// If `nth` is 0.
    pub fn nth(mut self, nth: usize) -> Self {
        assert!(nth > 0, "requests are counted from 1");
        self.nth = nth;
        self
    }

    /// Applies the request and swallows its reply. The link stays open.
    pub fn swallow_reply(self) -> Rule {
        self.reaction(Reaction::SwallowReply)
    }

    /// Resets the link in place of forwarding the request, which is not applied.
    pub fn reset_before(self) -> Rule {
        self.reaction(Reaction::ResetBefore)
    }

    /// Resets the link in place of the reply. The request is applied, and the client cannot know the outcome.
    pub fn reset_after(self) -> Rule {
        self.reaction(Reaction::ResetAfter)
    }

    /// Does the same as [`reset_after`](Self::reset_after), and also resets new links until
    /// [`heal`](super::Proxy::heal).
    pub fn cut_after(self) -> Rule {
        self.reaction(Reaction::CutAfter)
    }

    /// Holds the request, and everything that clients send after it, until [`heal`](super::Proxy::heal) or
    /// another [flow](super::Proxy::set_flow), so that other events can happen first.
    pub fn hold(self) -> Rule {
        self.reaction(Reaction::Hold)
    }

    fn reaction(self, reaction: Reaction) -> Rule {
        Rule { on: self, reaction, fired: watch::Sender::new(false) }
    }

    fn matches(&self, request: &Request) -> bool {
        self.op.is_none_or(|op| op == request.op())
            && self.conditions.iter().all(|condition| condition(request))
    }
}

impl fmt::Debug for On {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("On").field("op", &self.op).field("nth", &self.nth).finish_non_exhaustive()
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule").field("on", &self.on).field("reaction", &self.reaction).finish_non_exhaustive()
    }
}
