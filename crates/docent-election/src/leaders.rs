use crate::Leader;
use docent_core::recipe::{Line, SyncStream, full_error};
use docent_core::{Children, Error, ErrorKind, Node, Participant, WatchStream, planted};
use futures_core::Stream;
use futures_util::stream::{self, StreamExt};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// Stream of the leaders of an election. Created by [`Election::observe`](crate::Election::observe).
///
/// An error that needs an operator, such as `NoAuth`, is yielded once, and again only after a different
/// result. The stream does not end with such an error: the read is retried, and after it succeeds the current
/// leader is yielded, even if it is the same leader as before. Transient errors, such as those of an outage,
/// are only logged.
#[must_use = "a stream does nothing unless it is polled"]
pub struct Leaders(SyncStream<Result<Option<Leader>, Error>>);

impl Stream for Leaders {
    type Item = Result<Option<Leader>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(cx)
    }
}

impl fmt::Debug for Leaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leaders").finish_non_exhaustive()
    }
}

/// Pauses before the line is read again after consecutive errors: the first pause and the longest.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

pub(crate) fn observe(line: Line) -> Leaders {
    let observer =
        Observer { line, following: Following::Nothing, yielded: None, refusal: None, pause: None };
    let leaders = stream::unfold(observer, |mut observer| async move {
        let leader = observer.next().await?;
        Some((leader, observer))
    });
    Leaders(SyncStream::new(leaders))
}

struct Observer {
    line: Line,
    following: Following,
    /// Leader that was yielded last; `Some(None)` if the stream yielded that there is no leader.
    yielded: Option<Option<Leader>>,
    /// Kind of the error that was yielded last, unless a read succeeded since.
    refusal: Option<ErrorKind>,
    /// Length of the last pause after an error, unless a read succeeded since.
    pause: Option<Duration>,
}

/// Node that the stream watches.
enum Following {
    /// No node: the line must be read first.
    Nothing,
    /// The leader's node. Candidates that join later change nothing until the leader leaves.
    Leader(Box<Participant>, WatchStream<Node>),
    /// The election's own node, because there is no candidate.
    Newcomers(WatchStream<Children>),
}

/// Result of one step.
enum Seen {
    /// This leader leads, or there is none.
    Leads(Option<Leader>),
    /// The leader is currently unknown.
    Unknown,
    /// The client is closed.
    Closed,
}

impl Observer {
    /// Returns the next leader or error that is news, or `None` once the client is closed.
    async fn next(&mut self) -> Option<Result<Option<Leader>, Error>> {
        loop {
            // The stream also pauses after an error that was yielded.
            if let (Following::Nothing, Some(pause)) = (&self.following, self.pause) {
                self.line.pause(pause).await;
            }
            match self.step().await {
                Ok(Seen::Closed) => return None,
                Ok(Seen::Leads(leader)) => {
                    (self.refusal, self.pause) = (None, None);
                    if self.yielded.as_ref() != Some(&leader) {
                        self.yielded = Some(leader.clone());
                        return Some(Ok(leader));
                    }
                }
                Ok(Seen::Unknown) => {}
                Err(error) if is_final(&error) => return None,
                Err(error) => {
                    self.log_failure(&error);
                    if self.record_failure(&error) {
                        return Some(Err(error));
                    }
                }
            }
        }
    }

    /// Logs a failed read: the first one as a warning, later ones at debug level until a read succeeds.
    fn log_failure(&self, error: &Error) {
        let (client, path) = (self.line.client().label(), self.line.full_path());
        match self.pause {
            // Event: The client observes an election but cannot read its leader; the field `error` has the
            // reason. It retries until it succeeds, and logs further failures at debug level.
            // Action: Check that the servers are reachable and that the client may read the election's path.
            None => {
                tracing::warn!(target: "docent::election", %client, %path, error = %full_error(self.line.client(), error), "cannot determine the leader; retrying");
            }
            // Event: The client still cannot read the leader of an election that it observes. It retries with
            // a pause of up to 30 seconds.
            Some(_) => {
                tracing::debug!(target: "docent::election", %client, %path, error = %full_error(self.line.client(), error), "still cannot determine the leader; retrying");
            }
        }
    }

    /// Records that a read failed with `error`, and returns whether the stream yields the error.
    fn record_failure(&mut self, error: &Error) -> bool {
        // The watch event may already be consumed, so the line is read again.
        self.following = Following::Nothing;
        let [first, longest] = PAUSES;
        self.pause = match self.pause {
            // An attempt without a connection already takes its own time, so only other errors lengthen the
            // pause.
            Some(pause) if !error.is_retryable() => Some((pause * 2).min(longest)),
            pause => pause.or(Some(first)),
        };
        if error.is_retryable() || self.refusal == Some(error.kind()) {
            return false;
        }
        // After an error, any leader is news.
        (self.refusal, self.yielded) = (Some(error.kind()), None);
        true
    }

    /// Waits for the next event.
    async fn step(&mut self) -> Result<Seen, Error> {
        match &mut self.following {
            Following::Nothing => match self.line.first().await? {
                Some(first) => self.follow(first),
                None => {
                    let children = self.line.client().watch_children(self.line.path())?;
                    self.following = Following::Newcomers(children);
                    Ok(Seen::Unknown)
                }
            },
            Following::Leader(leader, node) => match node.next().await.transpose()? {
                None => Ok(Seen::Closed),
                Some(Some(node)) => {
                    leader.identity = node.data;
                    Ok(Seen::Leads(Some((**leader).clone().into())))
                }
                Some(None) if planted!(OnlookerStopsLooking) => Ok(Seen::Unknown),
                Some(None) => {
                    self.following = Following::Nothing;
                    Ok(Seen::Unknown)
                }
            },
            Following::Newcomers(children) => match children.next().await.transpose()? {
                None => Ok(Seen::Closed),
                Some(_) => match self.line.first().await? {
                    Some(first) => self.follow(first),
                    // The watch was set before this read and stays active.
                    None => Ok(Seen::Leads(None)),
                },
            },
        }
    }

    /// Watches the first ticket in line. Its owner leads if the node still exists once the watch is set.
    fn follow(&mut self, first: Participant) -> Result<Seen, Error> {
        let path = format!("{}/{}", self.line.path(), first.name);
        let node = self.line.client().watch_data(&path)?;
        self.following = Following::Leader(Box::new(first), node);
        Ok(Seen::Unknown)
    }
}

/// Returns whether the stream ends with this error. Unlike a candidate (`Line::wait_out`), an observer
/// continues after an error that needs an operator, such as `NoAuth`, because after its end no one would read
/// the line again.
fn is_final(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Closed | ErrorKind::EnsembleRolledBack | ErrorKind::SessionChanged)
}
