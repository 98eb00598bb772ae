use super::cohort::Cohort;
use super::{FenceKind, Mutex};
use docent_core::recipe::{Line, RecipeKind, debug_handle};
use docent_core::{Client, Error, Fence, Role, TurnFence};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

static KIND: RecipeKind = RecipeKind::new("mutex", "acquire");

/// Text before the number in a contender's name, as in Curator's `InterProcessMutex`.
const MARKER: &str = "lock-";

/// Time for which a shared ticket is passed on by default.
const SHARE_FOR: Duration = Duration::from_secs(1);

/// Settings of a [`Mutex`].
#[derive(Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct MutexBuilder<F = Fence> {
    client: Client,
    path: String,
    neighbours: Vec<String>,
    sharing: Option<Sharing>,
    fence: PhantomData<fn() -> F>,
}

/// Bounds within which tasks of a process share a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Sharing {
    limit: u32,
    time: Duration,
}

impl MutexBuilder {
    pub(crate) fn new(client: &Client, path: &str) -> Self {
        let (client, path) = (client.clone(), path.to_owned());
        Self { client, path, neighbours: Vec::new(), sharing: None, fence: PhantomData }
    }

    /// Lets tasks of this process share tickets: when one releases the lock the next one, in the order in
    /// which they came, has it at once, without a request. After `limit` times, 1 at least, or a
    /// [time](MutexBuilder::share_for), the ticket is given up, and those who still wait take another at the
    /// end of the line, so that other processes have their turns. Default off.
    ///
    /// All values of [`Mutex`] share that are of one client, at one path, with the same settings; a clone of
    /// the client with a timeout of its own, or bound to a session, counts as another client. They take part
    /// in the line with others as any contender does. A task that waits behind another has no node: it
    /// does not show among the [participants](Mutex::participants).
    ///
    /// A ticket is not passed on, but given up, also when it is lost or [revoked](Mutex::revoke), when the
    /// client is shut down, and when a write of a guard's [transaction](docent_core::Held::transaction) may
    /// still be applied, because its reply was lost or it was not waited for.
    ///
    /// Code that checks the [path](crate::MutexGuard::path) of a guard's node in a transaction of its own is
    /// to use the guard's transaction instead: the node stays when the turn is over, so that such a check,
    /// which does for a mutex that does not share, is neither waited for before the next turn nor refused in
    /// it.
    ///
    /// The guards have a [`TurnFence`]: a number of 64 bits cannot tell them apart. An owner that holds such
    /// a guard is refused with [`WouldDeadlock`](crate::AcquireError::WouldDeadlock) by a mutex of the same
    /// path that does not share.
    pub fn share_in_process(self, limit: u32) -> MutexBuilder<TurnFence> {
        let Self { client, path, neighbours, .. } = self;
        let sharing = Some(Sharing { limit, time: SHARE_FOR });
        MutexBuilder { client, path, neighbours, sharing, fence: PhantomData }
    }
}

impl MutexBuilder<TurnFence> {
    /// Longest time from the first turn with a ticket to the beginning of its last one. Default 1 s. A turn
    /// itself lasts as long as its guard.
    pub fn share_for(mut self, time: Duration) -> Self {
        self.sharing = self.sharing.map(|sharing| Sharing { time, ..sharing });
        self
    }
}

impl<F: FenceKind> MutexBuilder<F> {
    /// Waits for contenders of another kind, too: nodes whose names end with `marker` and ten digits, as
    /// `__lock__` for kazoo's `Lock`. May be called for several kinds. Default none, but those of Curator's
    /// and go-zookeeper's locks, which have our marker.
    ///
    /// They have to wait for ours as well, or both hold the lock: kazoo's does with
    /// `extra_lock_patterns=["lock-"]`. Everybody at the path needs the same settings.
    pub fn neighbours(mut self, marker: impl Into<String>) -> Self {
        self.neighbours.push(marker.into());
        self
    }

    /// The mutex.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule, a marker is empty, contains '/', ends with a digit or
    /// counts already, or tasks are to share a ticket 0 times.
    pub fn build(self) -> Result<Mutex<F>, Error> {
        let line = Line::new(&self.client, &self.path, &KIND, MARKER)?;
        let with = |line: Line, marker: &String| line.with_neighbours(marker, Role::Exclusive);
        let line = self.neighbours.iter().try_fold(line, with)?;
        let cohort = self.sharing.map(|sharing| cohort(&line, sharing, self.neighbours)).transpose()?;
        Ok(Mutex { line, cohort, fence: PhantomData })
    }
}

/// Those who share tickets of this line with these settings.
fn cohort(line: &Line, sharing: Sharing, neighbours: Vec<String>) -> Result<Arc<Cohort>, Error> {
    let Sharing { limit, time } = sharing;
    if limit == 0 {
        let rule = "the limit 0 of a ticket that is shared must be at least 1";
        return Err(Error::invalid_input("mutex", rule).at(line.path()));
    }
    Ok(line.common((sharing, neighbours), || Cohort::new(limit, time)))
}

impl<F> fmt::Debug for MutexBuilder<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "MutexBuilder", &self.path, &self.client)
            .field("neighbours", &self.neighbours)
            .field("sharing", &self.sharing)
            .finish_non_exhaustive()
    }
}
