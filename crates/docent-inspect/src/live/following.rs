use super::wanted::wanted;
use super::watches::{Kept, Watches};
use crate::inspect::{Inspection, Inspector};
use crate::nodes::Earlier;
use docent_core::{ConnectionState, Error, ErrorKind, StateWatcher};
use std::future::Future;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Time within which changes are merged.
const QUIET: Duration = Duration::from_millis(100);

/// Pause after a failed inspection, and the minimum interval between inspections without a change.
const PAUSE: Duration = Duration::from_secs(1);

/// Subject that is inspected repeatedly.
pub(super) trait Subject: Send + Sync + 'static {
    /// Result of an inspection.
    type Output: Clone + Send + Sync;

    /// Inspects the subject, using the answers of an earlier inspection instead of reads.
    fn inspect(
        &self,
        inspector: &Inspector,
        earlier: &mut Earlier,
    ) -> impl Future<Output = Result<Inspection<Self::Output>, Error>> + Send;

    /// Returns true if only ages changed.
    fn same(one: &Self::Output, other: &Self::Output) -> bool;

    /// Returns the time until the result changes merely because time passes.
    fn turns_in(result: &Self::Output) -> Option<Duration>;
}

/// Result of an inspection, and how fresh it is.
#[derive(Debug, Clone)]
pub(super) struct Followed<T> {
    pub(super) result: T,
    pub(super) is_stale: bool,
    pub(super) unwatched: usize,
}

/// Follower of a subject: it inspects the subject and watches everything that the result is based on. After a
/// change it inspects again, reading what changed and what is not watched.
pub(super) struct Following<S: Subject> {
    inspector: Inspector,
    subject: S,
    watches: Watches,
    earlier: Earlier,
    state: StateWatcher,
    /// Last item returned.
    last: Option<Followed<S::Output>>,
    /// Time of the next inspection without a change.
    next_inspection: Option<Instant>,
    /// True if the subject must be inspected.
    is_due: bool,
    /// Last error returned, until an inspection succeeds.
    failed: Option<ErrorKind>,
}

/// Item of a follower, or `None` if there is no news.
type NextItem<T> = Option<Result<Followed<T>, Error>>;

impl<S: Subject> Following<S> {
    pub(super) fn new(inspector: &Inspector, subject: S) -> Self {
        Self {
            state: inspector.client().state(),
            inspector: inspector.clone(),
            subject,
            watches: Watches::default(),
            earlier: Earlier::default(),
            last: None,
            next_inspection: None,
            is_due: true,
            failed: None,
        }
    }

    /// Returns the next item, or `None` at the end.
    pub(super) async fn next(&mut self) -> Option<Result<Followed<S::Output>, Error>> {
        loop {
            let item = if self.is_due { self.inspect().await? } else { self.wait().await?.map(Ok) };
            if item.is_some() {
                return item;
            }
        }
    }

    async fn inspect(&mut self) -> Option<NextItem<S::Output>> {
        let inspection = self.subject.inspect(&self.inspector, &mut self.earlier).await;
        match inspection.and_then(|inspection| self.accept(inspection)) {
            Ok(followed) => {
                (self.is_due, self.failed) = (false, None);
                let is_change =
                    self.last.as_ref().is_none_or(|last| last.is_stale || !same::<S>(last, &followed));
                self.last = Some(followed.clone());
                Some(is_change.then_some(Ok(followed)))
            }
            Err(error) if error.kind() == ErrorKind::Closed => None,
            Err(error) => {
                let is_change = self.failed.replace(error.kind()) != Some(error.kind());
                if !is_change {
                    sleep(PAUSE).await;
                }
                // An outage is reported as staleness, if there is a result.
                let item = if error.is_retryable() { self.stale().map(Ok) } else { Some(Err(error)) };
                Some(item.filter(|item| is_change || item.is_ok()))
            }
        }
    }

    fn accept(&mut self, inspection: Inspection<S::Output>) -> Result<Followed<S::Output>, Error> {
        let limits = self.inspector.limits();
        let Kept { guarded, unwatched } =
            self.watches.keep(self.inspector.client(), &wanted(&inspection), limits.watches)?;
        let periodic = (unwatched > 0).then_some(limits.look_every);
        let turn = S::turns_in(&inspection.result);
        let next = periodic.into_iter().chain(turn).min().map(|next| next.max(PAUSE));
        self.next_inspection = next.and_then(|next| Instant::now().checked_add(next));
        self.earlier = Earlier::of(inspection.nodes, &guarded);
        Ok(Followed { result: inspection.result, is_stale: false, unwatched })
    }

    /// Waits for a change. Returns `None` at the end, and the last result when it becomes stale.
    async fn wait(&mut self) -> Option<Option<Followed<S::Output>>> {
        let in_flight = self.inspector.limits().in_flight;
        let next_inspection = self.next_inspection;
        tokio::select! {
            is_change = self.watches.changed(&mut self.earlier, in_flight) => {
                self.is_due = is_change?;
                if self.is_due {
                    self.gather().await?;
                }
                Some(None)
            }
            status = self.state.changed() => {
                let is_connected = status?.state == ConnectionState::Connected;
                if is_connected {
                    // The earlier watches may not have reported everything yet.
                    (self.is_due, self.earlier) = (true, Earlier::default());
                }
                Some(if is_connected { None } else { self.stale() })
            }
            () = until(next_inspection) => {
                self.is_due = true;
                Some(None)
            }
        }
    }

    /// Collects the changes that follow quickly. Returns `None` at the end.
    async fn gather(&mut self) -> Option<()> {
        let in_flight = self.inspector.limits().in_flight;
        let more = async { while self.watches.changed(&mut self.earlier, in_flight).await.is_some() {} };
        timeout(QUIET, more).await.is_err().then_some(())
    }

    /// Returns the last result as stale, once.
    fn stale(&mut self) -> Option<Followed<S::Output>> {
        let last = self.last.as_mut().filter(|last| !last.is_stale)?;
        last.is_stale = true;
        Some(last.clone())
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

fn same<S: Subject>(one: &Followed<S::Output>, other: &Followed<S::Output>) -> bool {
    one.unwatched == other.unwatched && S::same(&one.result, &other.result)
}
