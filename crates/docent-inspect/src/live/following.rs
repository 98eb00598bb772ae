use super::wanted::wanted;
use super::watches::{Kept, Watches};
use crate::inspect::{Inspector, Looked};
use crate::nodes::Earlier;
use docent_core::{ConnectionState, Error, ErrorKind, StateWatcher};
use std::future::Future;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Time in which changes become one.
const QUIET: Duration = Duration::from_millis(100);

/// Pause after a look that failed, and the shortest one between looks without a change.
const PAUSE: Duration = Duration::from_secs(1);

/// Thing that is looked at again and again.
pub(super) trait Subject: Send + Sync + 'static {
    /// Result of a look.
    type Told: Clone + Send + Sync;

    /// Looks, with the answers of an earlier look in the place of reads.
    fn look(
        &self,
        inspector: &Inspector,
        earlier: &mut Earlier,
    ) -> impl Future<Output = Result<Looked<Self::Told>, Error>> + Send;

    /// True when nothing changed but time.
    fn same(one: &Self::Told, other: &Self::Told) -> bool;

    /// Time from a look to the one at which time alone changes the result.
    fn turns_in(told: &Self::Told) -> Option<Duration>;
}

/// Result of a look, and how fresh it is.
#[derive(Debug, Clone)]
pub(super) struct Followed<T> {
    pub(super) told: T,
    pub(super) is_stale: bool,
    pub(super) unwatched: usize,
}

/// Follower of a subject: looks, watches all that the look was made from, and looks again after changes,
/// where it reads what changed and what is not watched.
pub(super) struct Following<S: Subject> {
    inspector: Inspector,
    subject: S,
    watches: Watches,
    earlier: Earlier,
    state: StateWatcher,
    /// The item told last.
    last: Option<Followed<S::Told>>,
    /// Time of the next look without a change.
    next_look: Option<Instant>,
    /// True when it is to be looked at.
    is_due: bool,
    /// The error told last, until a look succeeds.
    failed: Option<ErrorKind>,
}

/// Item of a follower; `None` when there is no news.
type News<T> = Option<Result<Followed<T>, Error>>;

impl<S: Subject> Following<S> {
    pub(super) fn new(inspector: &Inspector, subject: S) -> Self {
        Self {
            state: inspector.client().state(),
            inspector: inspector.clone(),
            subject,
            watches: Watches::default(),
            earlier: Earlier::default(),
            last: None,
            next_look: None,
            is_due: true,
            failed: None,
        }
    }

    /// The next item; `None` at the end.
    pub(super) async fn next(&mut self) -> Option<Result<Followed<S::Told>, Error>> {
        loop {
            let news = if self.is_due { self.look().await? } else { self.wait().await?.map(Ok) };
            if news.is_some() {
                return news;
            }
        }
    }

    async fn look(&mut self) -> Option<News<S::Told>> {
        let looked = self.subject.look(&self.inspector, &mut self.earlier).await;
        match looked.and_then(|looked| self.taken(looked)) {
            Ok(followed) => {
                (self.is_due, self.failed) = (false, None);
                let is_news =
                    self.last.as_ref().is_none_or(|last| last.is_stale || !same::<S>(last, &followed));
                self.last = Some(followed.clone());
                Some(is_news.then_some(Ok(followed)))
            }
            Err(error) if error.kind() == ErrorKind::Closed => None,
            Err(error) => {
                let is_news = self.failed.replace(error.kind()) != Some(error.kind());
                if !is_news {
                    sleep(PAUSE).await;
                }
                // An outage is told as staleness, if there is a result.
                let item = if error.is_retryable() { self.stale().map(Ok) } else { Some(Err(error)) };
                Some(item.filter(|item| is_news || item.is_ok()))
            }
        }
    }

    fn taken(&mut self, looked: Looked<S::Told>) -> Result<Followed<S::Told>, Error> {
        let limits = self.inspector.limits();
        let Kept { guarded, unwatched } =
            self.watches.keep(self.inspector.client(), &wanted(&looked), limits.watches)?;
        let periodic = (unwatched > 0).then_some(limits.look_every);
        let turn = S::turns_in(&looked.told);
        let next = periodic.into_iter().chain(turn).min().map(|next| next.max(PAUSE));
        self.next_look = next.and_then(|next| Instant::now().checked_add(next));
        self.earlier = Earlier::of(looked.nodes, &guarded);
        Ok(Followed { told: looked.told, is_stale: false, unwatched })
    }

    /// Waits for a change. `None` at the end; the last result when it becomes stale.
    async fn wait(&mut self) -> Option<Option<Followed<S::Told>>> {
        let in_flight = self.inspector.limits().in_flight;
        let next_look = self.next_look;
        tokio::select! {
            is_news = self.watches.changed(&mut self.earlier, in_flight) => {
                self.is_due = is_news?;
                if self.is_due {
                    self.gather().await?;
                }
                Some(None)
            }
            status = self.state.changed() => {
                let is_connected = status?.state == ConnectionState::Connected;
                if is_connected {
                    // The watches of before may not have told all yet.
                    (self.is_due, self.earlier) = (true, Earlier::default());
                }
                Some(if is_connected { None } else { self.stale() })
            }
            () = until(next_look) => {
                self.is_due = true;
                Some(None)
            }
        }
    }

    /// Takes the changes that follow quickly. `None` at the end.
    async fn gather(&mut self) -> Option<()> {
        let in_flight = self.inspector.limits().in_flight;
        let more = async { while self.watches.changed(&mut self.earlier, in_flight).await.is_some() {} };
        timeout(QUIET, more).await.is_err().then_some(())
    }

    /// The last result as stale, once.
    fn stale(&mut self) -> Option<Followed<S::Told>> {
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

fn same<S: Subject>(one: &Followed<S::Told>, other: &Followed<S::Told>) -> bool {
    one.unwatched == other.unwatched && S::same(&one.told, &other.told)
}
