use super::draw::Intent;
#[cfg(docent_planted)]
use super::{Line, Ticket, draw::ticket};
use crate::cleanup::find;
use crate::error::Error;
use crate::operation::Attempts;
use crate::session::Cause;
#[cfg(docent_planted)]
use bytes::Bytes;
use docent_proto::{Stat, parent};
#[cfg(docent_planted)]
use std::sync::Arc;

impl Intent {
    /// Finds the nodes in the same session after the reply was lost. Returns their paths, and the stat of one
    /// of them.
    ///
    /// The nodes must belong to this session: a node of another session is no place in the line. If no node
    /// is found, the create may still be applied later (decision 11), so the intent still has to be undone.
    pub(super) async fn find(
        &mut self,
        attempts: &Attempts<'_>,
    ) -> Result<Option<(Vec<String>, Stat)>, Error> {
        self.unknown = true;
        match tokio::time::timeout_at(attempts.deadline, self.find_now()).await {
            Ok(Ok(found)) => {
                self.unknown = found.is_none();
                let paths = found.iter().flat_map(|(paths, _)| paths);
                paths.for_each(|path| self.generation.session.owns(path));
                Ok(found)
            }
            // The session has ended: the cleanup worker deletes any node that it left.
            Ok(Err(_)) => Ok(None),
            Err(_) => Err(attempts.timeout()),
        }
    }

    async fn find_now(&self) -> Result<Option<(Vec<String>, Stat)>, Cause> {
        let own = self.generation.session.id();
        let folder = parent(&self.prefix).unwrap_or("/");
        let mut found = find(&self.generation, own, folder, &self.prefix).await?;
        // Sort by number. One transaction created all nodes.
        found.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let first = found.first().map(|(_, stat)| *stat);
        let paths = found.into_iter().map(|(path, _)| path).collect();
        Ok(first.map(|stat| (paths, stat)))
    }

    /// Planted defect `NoOwnerCheck`: searches later sessions for the id as well, and takes the node that it
    /// finds.
    #[cfg(docent_planted)]
    pub(super) async fn take_over(
        &mut self,
        line: &Line,
        data: &Arc<Bytes>,
        attempts: &Attempts<'_>,
    ) -> Result<Option<Ticket>, Error> {
        while planted!(NoOwnerCheck) && self.unknown {
            let next = line.client().shared().next_generation(self.generation.number);
            let next = tokio::time::timeout_at(attempts.deadline, next).await;
            self.generation = next.map_err(|_| attempts.timeout())??;
            if let Some((mut paths, stat)) = self.find(attempts).await?
                && let Some(path) = paths.pop()
            {
                return ticket(line, &self.generation, data, path, stat.czxid).map(Some);
            }
        }
        Ok(None)
    }
}

impl Drop for Intent {
    fn drop(&mut self) {
        let reply = self.create.abandon();
        if (reply.is_some() || self.unknown) && !planted!(CleanupForgottenOnCancel) {
            self.generation.cleanup.undo_create(&self.generation, std::mem::take(&mut self.prefix), reply);
        }
    }
}
