use crate::Leader;
use docent_core::recipe::{Line, SyncStream};
use docent_core::{Children, Error, ErrorKind, Node, Participant, WatchStream, planted};
use futures_core::Stream;
use futures_util::stream::{self, StreamExt};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// Follows who leads an election. Made by [`Election::observe`](crate::Election::observe).
///
/// An error is yielded where only people can mend it, such as `NoAuth`, once until something else happens.
/// It is no end: the look is tried again, and once it succeeds the leader of that time is yielded, also
/// the same as before. Errors that pass by themselves, as in an outage, are logged alone.
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

/// Before the line is looked at again after errors, which follow each other: at first, and at most.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

pub(crate) fn observe(line: Line) -> Leaders {
    let observer = Observer { line, following: Following::Nothing, told: None, refusal: None, pause: None };
    let leaders = stream::unfold(observer, |mut observer| async move {
        let leader = observer.next().await?;
        Some((leader, observer))
    });
    Leaders(SyncStream::new(leaders))
}

struct Observer {
    line: Line,
    following: Following,
    /// The leader that was emitted last; `Some(None)` when it was that nobody leads.
    told: Option<Option<Leader>>,
    /// The kind of the error that was emitted last, unless somebody was seen since.
    refusal: Option<ErrorKind>,
    /// Length of the last pause after an error, unless somebody was seen since.
    pause: Option<Duration>,
}

/// Node that `Leaders` watches.
enum Following {
    /// No node: the line must be looked at first.
    Nothing,
    /// The leader's node. Later candidates change nothing until it leaves.
    Leader(Box<Participant>, WatchStream<Node>),
    /// The election's own node, because nobody stands.
    Newcomers(WatchStream<Children>),
}

/// Result of one step.
enum Seen {
    /// It leads, or nobody does.
    Leads(Option<Leader>),
    /// The leader is not known now.
    Unknown,
    /// The client is closed.
    Closed,
}

impl Observer {
    /// The next leader or error that is news; `None` once the client is closed.
    async fn next(&mut self) -> Option<Result<Option<Leader>, Error>> {
        loop {
            // An error that was told is followed by a pause, too.
            if let (Following::Nothing, Some(pause)) = (&self.following, self.pause) {
                self.line.pause(pause).await;
            }
            match self.step().await {
                Ok(Seen::Closed) => return None,
                Ok(Seen::Leads(leader)) => {
                    (self.refusal, self.pause) = (None, None);
                    if self.told.as_ref() != Some(&leader) {
                        self.told = Some(leader.clone());
                        return Some(Ok(leader));
                    }
                }
                Ok(Seen::Unknown) => {}
                Err(error) if is_final(&error) => return None,
                Err(error) => {
                    self.tell_blind(&error);
                    if self.is_news(&error) {
                        return Some(Err(error));
                    }
                }
            }
        }
    }

    /// Tells once that the leader cannot be seen, until it can.
    fn tell_blind(&self, error: &Error) {
        let (client, path) = (self.line.client().label(), self.line.path());
        match self.pause {
            None => tracing::warn!(client, path, %error, "cannot see who leads, trying on"),
            Some(_) => tracing::debug!(client, path, %error, "still cannot see who leads"),
        }
    }

    /// Notes that the look failed with `error`, and says whether it is told.
    fn is_news(&mut self, error: &Error) -> bool {
        // The watch may have fired for nothing.
        self.following = Following::Nothing;
        let [first, longest] = PAUSES;
        self.pause = match self.pause {
            // An attempt without a link takes its time itself.
            Some(pause) if !error.is_retryable() => Some((pause * 2).min(longest)),
            pause => pause.or(Some(first)),
        };
        if error.is_retryable() || self.refusal == Some(error.kind()) {
            return false;
        }
        // After it any leader is news.
        (self.refusal, self.told) = (Some(error.kind()), None);
        true
    }

    /// Waits for one thing to happen.
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
                    // The watch was set before this look, and goes on.
                    None => Ok(Seen::Leads(None)),
                },
            },
        }
    }

    /// Watches the first in the line. It leads if it is still there once the watch is set.
    fn follow(&mut self, first: Participant) -> Result<Seen, Error> {
        let path = format!("{}/{}", self.line.path(), first.name);
        let node = self.line.client().watch_data(&path)?;
        self.following = Following::Leader(Box::new(first), node);
        Ok(Seen::Unknown)
    }
}

/// True for an error after which nothing can be seen any more. Unlike a candidate (`Line::wait_out`), an
/// observer goes on also where only people can mend it, as with `NoAuth`: after its end nobody would look
/// again.
fn is_final(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Closed | ErrorKind::EnsembleRolledBack | ErrorKind::SessionChanged)
}
