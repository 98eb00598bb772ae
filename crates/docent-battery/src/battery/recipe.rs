use crate::{Fate, FrameKind, Net, Traced};
use docent_core::{ClientBuilder, Released};
use docent_proto::{Code, OpCode};
use std::fmt;
use std::future::Future;
use std::process::Command;
use std::time::Duration;

/// A recipe under test.
pub trait Recipe {
    /// One participant.
    type Contender: Contender;

    /// Creates a participant with its own client and session. All contenders below one namespace contend for
    /// the same thing.
    fn contender(&self, setup: &ContenderSetup) -> impl Future<Output = Self::Contender>;

    /// Path of the folder whose children stand for holders and waiters, below the namespace of a setup. The
    /// folder has no children when no contender holds or waits.
    fn folder(&self) -> &str;

    /// Returns true if a contender's frames show that it waits for the holder: all watches that wake the
    /// contender are set.
    fn waits(&self, trace: &[Traced]) -> bool;

    /// Returns true if the documentation of `step` allows `error` under `fault`.
    fn permits(&self, step: Step, fault: Fault, error: &<Self::Contender as Contender>::Error) -> bool;

    /// Number of times that a contender took a place, according to its frames: once for each acquire. The
    /// default counts the nodes created in `folder`, which is a full path.
    fn effects(&self, trace: &[Traced], folder: &str) -> usize {
        let created = |frame: &&Traced| {
            let create = frame.is_reply(OpCode::Create) || frame.is_reply(OpCode::Create2);
            let below = frame.path.as_ref().and_then(|path| path.strip_prefix(folder));
            create && frame.code == Some(Code::OK) && below.is_some_and(|name| name.starts_with('/'))
        };
        trace.iter().filter(created).count()
    }

    /// Number of nodes in `folder` with which a contender holds, all created by its acquire.
    fn nodes(&self) -> usize {
        1
    }
}

/// A recipe with a program that runs one participant.
pub trait RunsAsProcess: Recipe {
    /// Returns a program that contends in a separate process with a setup. The program prints a line `held`
    /// after it has acquired. For every line on its input it prints `held` or `lost`, as its guard reports at
    /// that moment. It exits when its input ends.
    fn process(&self, setup: &ContenderSetup) -> Command;
}

/// One participant of a recipe. The batteries drop its futures at every possible point.
pub trait Contender {
    /// Guard of a hold. Dropping it gives the hold up.
    type Held;
    /// Error of its operations.
    type Error: fmt::Debug;
    /// Fence, which increases from one holder to the next.
    type Fence: PartialOrd + fmt::Debug;

    /// Acquires, waiting until this contender holds.
    fn acquire(&self) -> impl Future<Output = Result<Self::Held, Self::Error>>;

    /// Asks the servers whether `held` is still held.
    fn verify(&self, held: &Self::Held) -> impl Future<Output = Result<(), Self::Error>>;

    /// Releases `held`, and waits until the release is done or pending.
    fn release(&self, held: Self::Held) -> impl Future<Output = Result<Released, Self::Error>>;

    /// Resolves when `held` is lost.
    fn lost(&self, held: &Self::Held) -> impl Future<Output = ()>;

    /// Returns true if `held` is certainly held, without I/O.
    fn is_held(&self, held: &Self::Held) -> bool;

    /// The fence of `held`, or `None` for recipes without fences.
    fn fence(&self, held: &Self::Held) -> Option<Self::Fence>;

    /// The full path, namespace included, of the node behind `held`.
    fn node(&self, held: &Self::Held) -> String;

    /// The id of its session.
    fn session_id(&self) -> Option<i64>;

    /// Closes its client.
    fn close(&self) -> impl Future<Output = ()>;
}

/// A participant whose client can be shut down gracefully.
pub trait ShutsDown: Contender {
    /// Resolves when the holder is asked to give `held` up.
    fn revoked(&self, held: &Self::Held) -> impl Future<Output = ()>;

    /// Shuts its client down within this time. Returns true if no node was left behind and no hold was taken
    /// away.
    fn shutdown(&self, within: Duration) -> impl Future<Output = bool>;
}

/// Setup of a [`Contender`]: the server and namespace that it uses.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ContenderSetup {
    /// Address to connect to.
    pub connect_string: String,
    /// The path above all the contender's paths. It may not exist yet.
    pub namespace: String,
    /// The session timeout to request.
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

    /// Returns the settings of a client with this setup.
    pub fn client_builder(&self) -> ClientBuilder {
        self.net
            .client_builder(&self.connect_string)
            .namespace(&self.namespace)
            .session_timeout(self.session_timeout)
            .server_tick(self.tick)
    }
}

/// Operation of a contender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// [`Contender::acquire`].
    Acquire,
    /// [`Contender::verify`].
    Verify,
    /// [`Contender::release`].
    Release,
}

/// Fault that a contender is exposed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// The reply to a request never arrived, and the link broke later.
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

/// Returns the number of a contender's requests without a reply, not counting pings. A helper for
/// [`Recipe::waits`].
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
