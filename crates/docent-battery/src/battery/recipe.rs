use crate::{Fate, FrameKind, Net, Traced};
use docent_core::ClientBuilder;
use docent_proto::{Code, OpCode};
use std::fmt;
use std::future::Future;
use std::process::Command;
use std::time::Duration;

/// A recipe as the batteries use it.
pub trait Recipe {
    /// One participant.
    type Contender: Contender;

    /// A participant with a client, and so a session, of its own. All contenders below one namespace contend
    /// for one thing.
    fn contender(&self, setup: &ContenderSetup) -> impl Future<Output = Self::Contender>;

    /// The path, below the namespace of a setup, of the node whose children stand for holders and waiters: it
    /// has none once nobody holds or waits.
    fn folder(&self) -> &str;

    /// True when the frames of a contender show that it waits for the holder: all watches that shall wake it
    /// are set.
    fn waits(&self, trace: &[Traced]) -> bool;

    /// True when the documentation of `step` allows for `error` under `fault`.
    fn permits(&self, step: Step, fault: Fault, error: &<Self::Contender as Contender>::Error) -> bool;

    /// Number of times that the frames of a contender show that it took a place or thing: once for each
    /// acquire. By default, the nodes created in `folder`, which is a full path.
    fn effects(&self, trace: &[Traced], folder: &str) -> usize {
        let created = |frame: &&Traced| {
            let create = frame.is_reply(OpCode::Create) || frame.is_reply(OpCode::Create2);
            let below = frame.path.as_ref().and_then(|path| path.strip_prefix(folder));
            create && frame.code == Some(Code::OK) && below.is_some_and(|name| name.starts_with('/'))
        };
        trace.iter().filter(created).count()
    }

    /// Number of nodes of `folder` that a contender holds by, all created by its acquire.
    fn nodes(&self) -> usize {
        1
    }
}

/// A recipe with a program for one participant.
pub trait RunsAsProcess: Recipe {
    /// A program that contends with a setup in a process of its own. It prints a line `held` once it has
    /// acquired; for every line it reads it prints `held` or `lost`, as its guard says then; it ends with its
    /// input.
    fn process(&self, setup: &ContenderSetup) -> Command;
}

/// One participant of a recipe. Its futures are dropped wherever they can be.
pub trait Contender {
    /// Guard of its hold. Dropping it gives it up.
    type Held;
    /// Error of its operations.
    type Error: fmt::Debug;
    /// Fence, which increases from one holder to the next.
    type Fence: PartialOrd + fmt::Debug;

    /// Waits until it holds.
    fn acquire(&self) -> impl Future<Output = Result<Self::Held, Self::Error>>;

    /// Asks the servers whether `held` is held.
    fn verify(&self, held: &Self::Held) -> impl Future<Output = Result<(), Self::Error>>;

    /// Gives `held` up, and waits until that is done.
    fn release(&self, held: Self::Held) -> impl Future<Output = Result<(), Self::Error>>;

    /// Resolves when `held` is lost.
    fn lost(&self, held: &Self::Held) -> impl Future<Output = ()>;

    /// True when `held` is certainly held, without I/O.
    fn is_held(&self, held: &Self::Held) -> bool;

    /// The fence of `held`; `None` for recipes without.
    fn fence(&self, held: &Self::Held) -> Option<Self::Fence>;

    /// The full path, namespace included, of the node behind `held`.
    fn node(&self, held: &Self::Held) -> String;

    /// Its session.
    fn session_id(&self) -> Option<i64>;

    /// Closes its client.
    fn close(&self) -> impl Future<Output = ()>;
}

/// A participant whose client can be shut down in order.
pub trait ShutsDown: Contender {
    /// Resolves when the holder is asked to give `held` up.
    fn revoked(&self, held: &Self::Held) -> impl Future<Output = ()>;

    /// Shuts its client down within this time. True when nothing was left behind, and nothing taken away.
    fn shutdown(&self, within: Duration) -> impl Future<Output = bool>;
}

/// Setup of a [`Contender`]: the server and namespace that it uses.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ContenderSetup {
    /// Address that it connects to.
    pub connect_string: String,
    /// The path above all its own. It may not exist yet.
    pub namespace: String,
    /// The session timeout it asks for.
    pub session_timeout: Duration,
    /// The server's tick.
    pub tick: Duration,
    pub(super) net: Net,
}

impl ContenderSetup {
    pub(super) fn new(
        net: Net,
        connect_string: String,
        namespace: String,
        session_timeout: Duration,
    ) -> Self {
        let tick = crate::ServerOptions::default().tick;
        Self { connect_string, namespace, session_timeout, tick, net }
    }

    /// Settings of a client that is set up so.
    pub fn client_builder(&self) -> ClientBuilder {
        self.net
            .client_builder(&self.connect_string)
            .namespace(&self.namespace)
            .session_timeout(self.session_timeout)
            .server_tick(self.tick)
    }
}

/// Operation that a contender was in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// [`Contender::acquire`].
    Acquire,
    /// [`Contender::verify`].
    Verify,
    /// [`Contender::release`].
    Release,
}

/// Fault that hit a contender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// The reply to a request never arrived; the link broke later.
    ReplyLost,
    /// The link broke before a request arrived.
    ResetBefore,
    /// The link broke after a request arrived.
    ResetAfter,
    /// The link broke after a request arrived, and the session ended before there was a new one.
    Expired,
    /// The link broke for a moment.
    Disconnected,
    /// Its client was closed.
    Closed,
    /// Its hold had been lost.
    Lost,
}

/// Number of requests of a contender without a reply, not counting pings: a help for [`Recipe::waits`].
pub fn unanswered(trace: &[Traced]) -> usize {
    let link = trace.last().map(|frame| frame.link);
    let mut count = 0_usize;
    for frame in trace.iter().filter(|frame| Some(frame.link) == link && frame.op != Some(OpCode::Ping)) {
        match frame.kind {
            FrameKind::Request => count += 1,
            FrameKind::Reply if frame.fate == Fate::Forwarded => count = count.saturating_sub(1),
            _ => {}
        }
    }
    count
}
