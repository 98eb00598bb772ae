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
    /// Looks for the nodes after the reply was lost, in the same session: their paths, and the stat of one.
    /// They must belong to this session: the node of another session is no place in the line. A create that
    /// was not found may be applied yet (decision 11), so that it stays to be undone.
    pub(super) async fn find(
        &mut self,
        attempts: &Attempts<'_>,
    ) -> Result<Option<(Vec<String>, Stat)>, Error> {
        self.unknown = true;
        match tokio::time::timeout_at(attempts.deadline, self.look()).await {
            Ok(Ok(found)) => {
                self.unknown = found.is_none();
                let paths = found.iter().flat_map(|(paths, _)| paths);
                paths.for_each(|path| self.generation.session.owns(path));
                Ok(found)
            }
            // The session has ended: the cleanup worker deletes a node that it may have left.
            Ok(Err(_)) => Ok(None),
            Err(_) => Err(attempts.timeout()),
        }
    }

    async fn look(&self) -> Result<Option<(Vec<String>, Stat)>, Cause> {
        let own = self.generation.session.id();
        let folder = parent(&self.prefix).unwrap_or("/");
        let mut found = find(&self.generation, own, folder, &self.prefix).await?;
        // In the order of their numbers. One transaction made them all.
        found.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let first = found.first().map(|(_, stat)| *stat);
        let paths = found.into_iter().map(|(path, _)| path).collect();
        Ok(first.map(|stat| (paths, stat)))
    }

    /// The defect `NoOwnerCheck`: the id is looked for in later sessions, too, and the node found is taken.
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
