//! Looks at a line that those share who look at the same time: many who give up at once ask once.

use super::participant::{names_by, of_node, read_node};
use super::{Ahead, Line, Participant};
use crate::error::Error;
use futures_util::FutureExt;

impl Line {
    /// As [`ahead`](Self::ahead), with the answer of a look of the same client that is under way, if there is
    /// one: it may be older than the call. For accounts of what was seen last. Clones that are bound to a
    /// session or have a timeout of their own share no looks with others.
    ///
    /// # Errors
    /// As [`ahead`](Self::ahead).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn glance(&self, ticket: Option<&str>) -> Result<Ahead, Error> {
        let lines = &self.client().shared().glances.lines;
        let names = lines.ask(self.client().key(self.full_path().to_owned()), || {
            let line = self.clone();
            async move { Ok(names_by(&line, line.client().deadline()).await?.into()) }.boxed()
        });
        match names.await {
            Some(names) => self.ahead_listed(ticket, &names?).await,
            None => self.ahead(ticket).await,
        }
    }

    /// As [`holder`](Self::holder), in the way of a [`glance`](Self::glance).
    ///
    /// # Errors
    /// As [`holder`](Self::holder).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn glance_holder(&self, ahead: &Ahead) -> Result<Option<Participant>, Error> {
        let Some(first) = ahead.first() else { return Ok(None) };
        let nodes = &self.client().shared().glances.nodes;
        let key = self.client().key(format!("{}/{first}", self.full_path()));
        let node = nodes.ask(key, || {
            let (line, name) = (self.clone(), first.to_owned());
            async move { read_node(&line, &name, line.client().deadline()).await }.boxed()
        });
        let Some(node) = node.await else { return self.holder(ahead).await };
        let found = node?.and_then(|found| of_node(self, first.to_owned(), found));
        Ok(found.map(|first| Participant { holds: true, ..first }))
    }
}
