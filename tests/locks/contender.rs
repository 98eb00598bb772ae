//! Descriptions of the locks for the batteries.

use docent::locks::{
    AcquireError, AnyLock, MultiGuard, MutexGuard, Permit, ReadGuard, SharedMutex, SharedMutexGuard,
    TurnFence, WriteGuard,
};
use docent::{Client, ErrorKind, MultiLock, Mutex, Released, RwLock, Semaphore};
use docent_battery::Traced;
use docent_battery::battery::{
    Contender, ContenderSetup, Fault, Recipe, RunsAsProcess, ShutsDown, Step, unanswered,
};
use docent_proto::{Code, OpCode};
use docent_tests::contenders;
use std::cell::RefCell;
use std::collections::HashMap;
use std::process::Command;
use std::time::Duration;

const LOCK: &str = "/lock";
const LEASES: &str = "/lock/leases";

/// The lock that a contender acquires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Mutex,
    /// A mutex whose tickets the tasks of a process share.
    Shared,
    Read,
    Write,
    /// A writer that became a reader.
    Downgraded,
    /// A semaphore of one permit.
    Permit,
    /// Both permits of a semaphore of two.
    Permits,
    /// A mutex at the path of the others, and both sides of two read/write locks.
    Multi,
    /// A mutex at the path of the others, and a read lock. The holder of the mutex has everything.
    MultiRead,
}

impl Kind {
    /// Kinds that exclude other contenders of the same kind.
    pub(crate) const EXCLUSIVE: [Self; 6] =
        [Self::Mutex, Self::Shared, Self::Write, Self::Permit, Self::Permits, Self::Multi];

    fn name(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::Shared => "shared",
            Self::Read => "read",
            Self::Write => "write",
            Self::Downgraded => "downgraded",
            Self::Permit => "permit",
            Self::Permits => "permits",
            Self::Multi | Self::MultiRead => "multi",
        }
    }
}

/// A recipe whose contenders all acquire the same kind, except perhaps the first of each case.
pub(crate) struct Locks {
    first: Kind,
    rest: Kind,
    /// Number of contenders in each case.
    contenders: RefCell<HashMap<String, usize>>,
}

impl Locks {
    pub(crate) fn of(kind: Kind) -> Self {
        Self::with_first(kind, kind)
    }

    pub(crate) fn with_first(first: Kind, rest: Kind) -> Self {
        Self { first, rest, contenders: RefCell::default() }
    }
}

pub(crate) struct Locker {
    client: Client,
    kind: Kind,
    namespace: String,
    /// False if readers take part.
    fenced: bool,
}

pub(crate) enum Guard {
    Mutex(MutexGuard),
    Shared(SharedMutexGuard),
    Read(ReadGuard),
    Write(WriteGuard),
    Permit(Permit),
    Multi(MultiGuard),
}

impl Guard {
    fn held(&self) -> &docent::guard::Held {
        match self {
            Self::Mutex(guard) => guard,
            Self::Shared(guard) => guard,
            Self::Read(guard) => guard,
            Self::Write(guard) => guard,
            Self::Permit(guard) => guard,
            Self::Multi(guard) => guard,
        }
    }
}

impl Recipe for Locks {
    type Contender = Locker;

    async fn contender(&self, setup: &ContenderSetup) -> Locker {
        let client = contenders::connect(setup).await;
        let mut contenders = self.contenders.borrow_mut();
        let number = contenders.entry(setup.namespace.clone()).or_default();
        let kind = if *number == 0 { self.first } else { self.rest };
        *number += 1;
        let unfenced = [Kind::Read, Kind::Permit, Kind::Permits];
        let fenced = !unfenced.contains(&self.first) && !unfenced.contains(&self.rest);
        Locker { client, kind, namespace: setup.namespace.clone(), fenced }
    }

    fn folder(&self) -> &str {
        if matches!(self.rest, Kind::Permit | Kind::Permits) { LEASES } else { LOCK }
    }

    fn effects(&self, trace: &[Traced], folder: &str) -> usize {
        if self.rest == Kind::Permits {
            // One transaction creates both permits. Its path has no number, unlike that of a check, and the
            // names in its reply distinguish it from a refused transaction.
            let creates = |frame: &&Traced| {
                let path = frame.path.as_ref().filter(|path| path.starts_with(folder));
                let is_made = |path: &String| path.ends_with("-lease-") && frame.length > 2 * path.len();
                frame.is_reply(OpCode::Multi) && path.is_some_and(is_made)
            };
            return trace.iter().filter(creates).count() * self.nodes();
        }
        let created = |frame: &&Traced| {
            let create = frame.is_reply(OpCode::Create) || frame.is_reply(OpCode::Create2);
            let below = frame.path.as_ref().and_then(|path| path.strip_prefix(folder));
            // A writer that becomes a reader keeps its place with a second node.
            let counts = |name: &str| {
                name.starts_with('/') && (self.first != Kind::Downgraded || name.contains("__READ__"))
            };
            create && frame.code == Some(Code::OK) && below.is_some_and(counts)
        };
        trace.iter().filter(created).count()
    }

    fn nodes(&self) -> usize {
        if self.rest == Kind::Permits { 2 } else { 1 }
    }

    /// A waiter watches one node ahead and its own node with one request. A waiter for permits watches the
    /// folder, after a listing that contains its own node.
    fn waits(&self, trace: &[Traced]) -> bool {
        let watches = |frame: &&Traced| match self.rest {
            Kind::Permit | Kind::Permits => {
                let is_folder = frame.path.as_ref().is_some_and(|path| path.ends_with(LEASES));
                frame.is_reply(OpCode::GetChildren2) && is_folder
            }
            _ => frame.is_reply(OpCode::SetWatches),
        };
        let least = if matches!(self.rest, Kind::Permit | Kind::Permits) { 2 } else { 1 };
        trace.iter().filter(watches).count() >= least && unanswered(trace) == 0
    }

    fn permits(&self, step: Step, fault: Fault, error: &AcquireError) -> bool {
        let AcquireError::Core(error) = error else { return false };
        // The writer's hold may be lost while it becomes a reader.
        let lost_on_the_way = self.first == Kind::Downgraded
            && step == Step::Acquire
            && matches!(fault, Fault::Expired | Fault::Closed | Fault::Lost)
            && matches!(error.kind(), ErrorKind::Lost(_));
        lost_on_the_way || contenders::is_documented(step, fault, &error.kind())
    }
}

impl RunsAsProcess for Locks {
    fn process(&self, setup: &ContenderSetup) -> Command {
        // The process is the first contender.
        self.contenders.borrow_mut().insert(setup.namespace.clone(), 1);
        let mut command = contenders::process(env!("CARGO_BIN_EXE_holder"), setup);
        command.args([LOCK, self.first.name()]);
        command
    }
}

impl Contender for Locker {
    type Held = Guard;
    type Error = AcquireError;
    type Fence = TurnFence;

    async fn acquire(&self) -> Result<Guard, AcquireError> {
        let rw_lock = || RwLock::new(&self.client, LOCK);
        Ok(match self.kind {
            Kind::Mutex => Guard::Mutex(Mutex::new(&self.client, LOCK)?.acquire().await?),
            Kind::Shared => {
                let mutex = SharedMutex::builder(&self.client, LOCK).limit(3).build()?;
                Guard::Shared(mutex.acquire().await?)
            }
            Kind::Read => Guard::Read(rw_lock()?.read().await?),
            Kind::Write => Guard::Write(rw_lock()?.write().await?),
            Kind::Downgraded => {
                let written = rw_lock()?.write().await?;
                let place = written.path();
                let read = written.downgrade().await?;
                // The writer's node is deleted in the background.
                while self.client.exists(&place).await?.is_some() {}
                Guard::Read(read)
            }
            Kind::Permit => Guard::Permit(Semaphore::new(&self.client, LOCK, 1)?.acquire().await?),
            Kind::Permits => Guard::Permit(Semaphore::new(&self.client, LOCK, 2)?.acquire_many(2).await?),
            Kind::Multi | Kind::MultiRead => {
                let mutex = Mutex::new(&self.client, LOCK)?;
                let read = RwLock::new(&self.client, "/lock-to-read")?.reading();
                let write = RwLock::new(&self.client, "/lock-to-write")?.writing();
                let mut locks = vec![read, AnyLock::from(mutex), write];
                locks.truncate(if self.kind == Kind::Multi { 3 } else { 2 });
                Guard::Multi(MultiLock::new(locks)?.acquire().await?)
            }
        })
    }

    async fn verify(&self, held: &Guard) -> Result<(), AcquireError> {
        Ok(held.held().verify().await?)
    }

    async fn release(&self, held: Guard) -> Result<Released, AcquireError> {
        let released = match held {
            Guard::Mutex(guard) => guard.release().await,
            Guard::Shared(guard) => guard.release().await,
            Guard::Read(guard) => guard.release().await,
            Guard::Write(guard) => guard.release().await,
            Guard::Permit(guard) => guard.release().await,
            Guard::Multi(guard) => guard.release().await,
        };
        Ok(released?)
    }

    async fn lost(&self, held: &Guard) {
        held.held().lost().await;
    }

    fn is_held(&self, held: &Guard) -> bool {
        held.held().is_held()
    }

    fn fence(&self, held: &Guard) -> Option<TurnFence> {
        if !self.fenced {
            return None;
        }
        match held {
            Guard::Shared(guard) => Some(guard.fence()),
            Guard::Multi(guard) => guard.fence(LOCK).map(TurnFence::from),
            // A reader that was a writer has the writer's fence.
            held => held.held().fence().map(TurnFence::from),
        }
    }

    fn node(&self, held: &Guard) -> String {
        let path = match held {
            Guard::Mutex(guard) => guard.path(),
            Guard::Shared(guard) => guard.path(),
            Guard::Read(guard) => guard.path(),
            Guard::Write(guard) => guard.path(),
            Guard::Permit(guard) => guard.paths().remove(0),
            Guard::Multi(guard) => guard.paths().remove(0),
        };
        format!("{}{path}", self.namespace)
    }

    fn session_id(&self) -> Option<i64> {
        self.client.session_id()
    }

    async fn close(&self) {
        self.client.close().await;
    }
}

impl ShutsDown for Locker {
    async fn revoked(&self, held: &Guard) {
        held.held().revoked().await;
    }

    async fn shutdown(&self, within: Duration) -> bool {
        self.client.shutdown(within).await.is_clean()
    }
}
