use super::Election;
use crate::Leader;
use crate::leaders::{self, Leaders};
use docent_core::recipe::InOperation;
use docent_core::{Error, Participant};
use futures_util::StreamExt;
use std::future::Future;

impl Election {
    /// Returns whether this candidate, or a clone of it, leads now. Does no I/O.
    ///
    /// Use the result for a dashboard or a health check. It may be outdated when the caller reads it, so do
    /// not base work on it that only the leader may do: such work belongs in [`run`](Self::run).
    pub fn is_leader(&self) -> bool {
        self.leading().upgrade().is_some_and(|hold| hold.is_held())
    }

    /// Returns the current leader as a server sees it, or `None` if there is no candidate. See [`Leader`] for
    /// the limits of this information.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn leader(&self) -> impl Future<Output = Result<Option<Leader>, Error>> + Send + use<> {
        let line = self.0.line.clone();
        async move { Ok(line.first().await.in_operation("leader")?.map(Leader::from)) }
    }

    /// Waits until there is a leader and returns it; returns immediately if there already is one. An outage
    /// of the servers is waited out. See [`Leader`] for the limits of this information.
    ///
    /// # Errors
    /// `NoAuth` and other errors that need an operator; `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn wait_for_leader(&self) -> impl Future<Output = Result<Leader, Error>> + Send + use<> {
        let (election, mut leaders) = (self.clone(), self.observe());
        async move {
            while let Some(seen) = leaders.next().await {
                if let Some(leader) = seen.in_operation("wait_for_leader")? {
                    return Ok(leader);
                }
            }
            // A direct read returns the error that ended the stream.
            let leader = election.leader().await.in_operation("wait_for_leader")?;
            leader.ok_or_else(|| Error::closed("wait_for_leader", election.path()))
        }
    }

    /// Returns a stream of leaders: first the current leader, or `None` if there is no candidate, then each
    /// change of the leader or of its [data](crate::Leadership::proclaim). A slow observer skips intermediate
    /// leaders but always receives the latest. An observer does not have to be a candidate.
    ///
    /// The stream watches only the leader's node, or the election's node while there is no candidate. Joining
    /// and leaving candidates therefore do not wake observers. The stream survives lost connections and
    /// sessions; during an outage the last known leader may be outdated. It ends when the client is closed
    /// or, if the client is bound to a session, when that session ends. An error that needs an operator, such
    /// as `NoAuth`, is yielded, and the read is retried: see [`Leaders`].
    ///
    /// # On drop
    /// The watch is removed from the server.
    pub fn observe(&self) -> Leaders {
        leaders::observe(self.0.line.clone())
    }

    /// Returns all candidates, the leader first, each with the data of its node (`identity`), its number in
    /// the line, and the time at which it joined.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn candidates(&self) -> impl Future<Output = Result<Vec<Participant>, Error>> + Send + use<> {
        let line = self.0.line.clone();
        async move { line.participants().await.in_operation("candidates") }
    }
}
