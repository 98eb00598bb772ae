use super::Election;
use crate::Leader;
use crate::leaders::{self, Leaders};
use docent_core::{Error, Participant};
use futures_util::StreamExt;
use std::future::Future;

impl Election {
    /// True when this candidate, or a clone of it, leads now: no I/O.
    ///
    /// Advice for a dashboard or a health check. It may be false by the time it is looked at, so nothing that
    /// the leader alone may do should be done because of it: that belongs into [`run`](Self::run).
    pub fn is_leader(&self) -> bool {
        self.leading().upgrade().is_some_and(|hold| hold.is_held())
    }

    /// The leader now, as a server sees it; `None` when there is no candidate. See [`Leader`] for what that
    /// is worth.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn leader(&self) -> impl Future<Output = Result<Option<Leader>, Error>> + Send + use<> {
        let line = self.0.line.clone();
        async move { Ok(line.first().await?.map(Leader::from)) }
    }

    /// Waits until somebody leads, and returns that leader: at once where there is one. An outage of the
    /// servers is waited out. See [`Leader`] for what the answer is worth.
    ///
    /// # Errors
    /// `NoAuth` and others that only people can mend; `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn wait_for_leader(&self) -> impl Future<Output = Result<Leader, Error>> + Send + use<> {
        let (election, mut leaders) = (self.clone(), self.observe());
        async move {
            while let Some(seen) = leaders.next().await {
                if let Some(leader) = seen? {
                    return Ok(leader);
                }
            }
            // Its error says why the stream ended.
            election.leader().await?.ok_or_else(|| Error::closed("observe", election.path()))
        }
    }

    /// Follows who leads: the present leader first, `None` while nobody stands, then each other, and the
    /// same one with other [data](crate::Leadership::proclaim). A slow observer misses those in between
    /// and always gets the last. One need not stand to observe.
    ///
    /// It watches the leader's node alone, or the election's while nobody stands, so that candidates who come
    /// and go neither wake it nor notice it. It survives lost links and sessions, during which the last
    /// leader known may be old, and ends when the client is closed, or its session has ended if it is bound
    /// to one. An error that only people can mend, such as `NoAuth`, is yielded, and the look tried again:
    /// see [`Leaders`].
    ///
    /// # On drop
    /// The watch at the server is removed.
    pub fn observe(&self) -> Leaders {
        leaders::observe(self.0.line.clone())
    }

    /// All candidates, first the leader: the data of their nodes (`identity`), their number in the line, and
    /// since when they stand.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn candidates(&self) -> impl Future<Output = Result<Vec<Participant>, Error>> + Send + use<> {
        let line = self.0.line.clone();
        async move { line.participants().await }
    }
}
