//! Shared reads of a line: if many callers give up at the same time, one request serves all of them.

use super::participant::{names_by, of_node, read_node};
use super::{Ahead, Line, Participant};
use crate::error::Error;
use futures_util::FutureExt;

impl Line {
    /// Same as [`ahead`](Self::ahead), but shares the answer of a read that the same client already has in
    /// flight. The answer may then be older than the call, so this method suits reports of the last known
    /// state. Clones that are bound to a session, or have another timeout, share no reads with other handles.
    ///
    /// # Errors
    /// Same as [`ahead`](Self::ahead).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn ahead_coalesced(&self, ticket: Option<&str>) -> Result<Ahead, Error> {
        let lines = &self.client().shared().coalesced_reads.lines;
        let names = lines.join_or_start(self.client().key(self.full_path().to_owned()), || {
            let line = self.clone();
            async move { Ok(names_by(&line, line.client().deadline()).await?.into()) }.boxed()
        });
        match names.await {
            Some(names) => self.ahead_listed(ticket, &names?).await,
            None => self.ahead(ticket).await,
        }
    }

    /// Same as [`holder`](Self::holder), but shares reads in flight like
    /// [`ahead_coalesced`](Self::ahead_coalesced).
    ///
    /// # Errors
    /// Same as [`holder`](Self::holder).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn holder_coalesced(&self, ahead: &Ahead) -> Result<Option<Participant>, Error> {
        let Some(first) = ahead.first() else { return Ok(None) };
        let nodes = &self.client().shared().coalesced_reads.nodes;
        let key = self.client().key(format!("{}/{first}", self.full_path()));
        let node = nodes.join_or_start(key, || {
            let (line, name) = (self.clone(), first.to_owned());
            async move { read_node(&line, &name, line.client().deadline()).await }.boxed()
        });
        let Some(node) = node.await else { return self.holder(ahead).await };
        let found = node?.and_then(|found| of_node(self, first.to_owned(), found));
        Ok(found.map(|first| Participant { holds: true, ..first }))
    }
}
