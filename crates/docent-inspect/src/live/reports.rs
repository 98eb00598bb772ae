use super::Live;
use super::watches::Watches;
use crate::inspect::{Inspected, Inspector};
use crate::report::Report;
use docent_core::recipe::SyncStream;
use docent_core::{ConnectionState, Error, ErrorKind, StateWatcher};
use futures_core::Stream;
use futures_util::stream::{self, StreamExt};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// Time in which changes become one.
const QUIET: Duration = Duration::from_millis(100);

/// Pause after a look that failed.
const PAUSE: Duration = Duration::from_secs(1);

/// Reports of one path, the present one first and then one after each change. Made by
/// [`Inspector::watch`].
#[must_use = "a stream does nothing unless it is polled"]
pub struct Reports(SyncStream<Result<Live, Error>>);

impl Reports {
    pub(crate) fn new(inspector: &Inspector, path: &str) -> Self {
        let following = Following {
            state: inspector.client().state(),
            inspector: inspector.clone(),
            path: path.to_owned(),
            watches: Watches::default(),
            last: None,
            is_due: true,
            failed: None,
        };
        let stream = stream::unfold(following, |mut following| async move {
            let item = following.next().await?;
            Some((item, following))
        });
        Self(SyncStream::new(stream))
    }
}

impl Stream for Reports {
    type Item = Result<Live, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(cx)
    }
}

impl fmt::Debug for Reports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reports").finish_non_exhaustive()
    }
}

/// A path that is followed.
struct Following {
    inspector: Inspector,
    path: String,
    watches: Watches,
    state: StateWatcher,
    /// The item told last.
    last: Option<Live>,
    /// True when the path is to be looked at.
    is_due: bool,
    /// The error told last, until a look succeeds.
    failed: Option<ErrorKind>,
}

impl Following {
    async fn next(&mut self) -> Option<Result<Live, Error>> {
        loop {
            if self.is_due {
                if let Some(item) = self.look().await? {
                    return Some(item);
                }
            } else if let Some(stale) = self.wait().await? {
                return Some(Ok(stale));
            }
        }
    }

    /// Looks at the path. `None` at the end; an item when it is news.
    async fn look(&mut self) -> Option<Option<Result<Live, Error>>> {
        match self.inspector.inspect(&self.path).await.and_then(|inspected| self.taken(inspected)) {
            Ok(live) => {
                (self.is_due, self.failed) = (false, None);
                let is_news = self.last.as_ref().is_none_or(|last| last.is_stale || !same(last, &live));
                self.last = Some(live.clone());
                Some(is_news.then_some(Ok(live)))
            }
            Err(error) if error.kind() == ErrorKind::Closed => None,
            Err(error) => {
                let is_news = self.failed.replace(error.kind()) != Some(error.kind());
                if !is_news {
                    tokio::time::sleep(PAUSE).await;
                }
                // An outage is told as staleness, if there is a report.
                let item = if error.is_retryable() { self.stale().map(Ok) } else { Some(Err(error)) };
                Some(item.filter(|item| is_news || item.is_ok()))
            }
        }
    }

    fn taken(&mut self, inspected: Inspected) -> Result<Live, Error> {
        let Inspected { report, reads, .. } = inspected;
        let inspector = &self.inspector;
        let unwatched = self.watches.keep(inspector.client(), &reads, inspector.limits().watches)?;
        Ok(Live { report, is_stale: false, unwatched })
    }

    /// Waits for a change. `None` at the end; the last report when it becomes stale.
    async fn wait(&mut self) -> Option<Option<Live>> {
        tokio::select! {
            open = self.watches.changed() => {
                if !open {
                    return None;
                }
                self.is_due = true;
                tokio::time::sleep(QUIET).await;
                Some(None)
            }
            status = self.state.changed() => {
                let is_connected = status?.state == ConnectionState::Connected;
                self.is_due |= is_connected;
                Some(if is_connected { None } else { self.stale() })
            }
        }
    }

    /// The last report as stale, once.
    fn stale(&mut self) -> Option<Live> {
        let last = self.last.as_mut().filter(|last| !last.is_stale)?;
        last.is_stale = true;
        Some(last.clone())
    }
}

/// True when nothing changed but time.
fn same(one: &Live, other: &Live) -> bool {
    let timeless = |live: &Live| Report { as_of_zxid: 0, clock: None, ..live.report.clone() };
    one.unwatched == other.unwatched && timeless(one) == timeless(other)
}
