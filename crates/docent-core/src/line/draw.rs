use super::name::{is_in_danger_zone, is_running_out, protected, sequence};
use super::position::Position;
use super::{Line, Ticket};
use crate::cleanup::{OwnedNode, find};
use crate::error::{Error, ErrorKind};
use crate::guard::SessionGeneration;
use crate::operation::{Attempts, Idempotency, unexpected};
use crate::session::ask::{PAUSE, ask};
use crate::session::{Cause, Lane, Outcome, Pending};
use crate::setup::{PARENT_ROUNDS, create_parents_in, refused_parent};
use bytes::Bytes;
use docent_proto::{Code, Create, CreateMode, Request, Response, Stat, parent};
use std::sync::Arc;

/// A create on its way. If it is dropped, the node is deleted as soon as its fate is known: the cleanup
/// worker is told the node's id whatever happened to the reply.
pub(super) struct Intent {
    pub(super) generation: Arc<SessionGeneration>,
    /// Full path without the number.
    pub(super) prefix: String,
    pub(super) create: Pending,
    /// True when the reply was lost: the node may be there.
    pub(super) unknown: bool,
}

impl Intent {
    fn submit(line: &Line, generation: &Arc<SessionGeneration>, data: Bytes) -> Self {
        let prefix = format!("{}/{}", line.full_path(), protected(line.marker()));
        let acl = line.client().shared().acl(&prefix);
        let create = Create::new(prefix.clone(), data, acl, CreateMode::EphemeralSequential, 0);
        let create = generation.session.submit(Request::Create(create), Lane::Call);
        Self { generation: Arc::clone(generation), prefix, create, unknown: false }
    }
}

impl Intent {
    /// Looks for the node after its reply was lost, in the same session. It must belong to this session: the
    /// node of another session is no place in the line. A create that was not found may be applied yet
    /// (decision 11), so that it stays to be undone.
    pub(super) async fn find(&mut self, attempts: &Attempts<'_>) -> Result<Option<(String, Stat)>, Error> {
        self.unknown = true;
        match tokio::time::timeout_at(attempts.deadline, self.look()).await {
            Ok(Ok(found)) => {
                self.unknown = found.is_none();
                found.iter().for_each(|(path, _)| self.generation.session.owns(path));
                Ok(found)
            }
            // The session has ended: the cleanup worker deletes a node that it may have left.
            Ok(Err(_)) => Ok(None),
            Err(_) => Err(attempts.timeout()),
        }
    }

    async fn look(&self) -> Result<Option<(String, Stat)>, Cause> {
        let own = self.generation.session.id();
        let folder = parent(&self.prefix).unwrap_or("/");
        'paths: for path in find(&self.generation, folder, &self.prefix).await? {
            loop {
                let request = || Request::Exists { path: path.clone(), watch: false };
                match ask(&self.generation, Lane::Cleanup, request).await?.result {
                    Ok(Response::Stat(stat)) if stat.ephemeral_owner == own || planted!(NoOwnerCheck) => {
                        return Ok(Some((path, stat)));
                    }
                    Ok(_) | Err(Code::NO_NODE) => continue 'paths,
                    // Any other code says nothing about the node: only `NO_NODE` is absence.
                    Err(_) => tokio::time::sleep(PAUSE).await,
                }
            }
        }
        Ok(None)
    }

    /// The defect `NoOwnerCheck`: the id is looked for in later sessions, too, and the node found is taken.
    #[cfg(docent_planted)]
    async fn take_over(&mut self, line: &Line, attempts: &Attempts<'_>) -> Result<Option<Ticket>, Error> {
        while planted!(NoOwnerCheck) && self.unknown {
            let next = line.client().shared().next_generation(self.generation.number);
            let next = tokio::time::timeout_at(attempts.deadline, next).await;
            self.generation = next.map_err(|_| attempts.timeout())??;
            if let Some((path, stat)) = self.find(attempts).await? {
                return ticket(line, &self.generation, path, stat.czxid).map(Some);
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

/// Creates a ticket and lists the line in one trip.
pub(super) async fn draw(line: &Line, data: Option<Bytes>) -> Result<Ticket, Error> {
    let client = line.client();
    let data = data.unwrap_or_else(|| Bytes::from(client.shared().identity.clone()));
    // A create can be repeated: an earlier one that was applied is found by its id, and deleted.
    let mut attempts = client.attempts("draw", line.path(), Idempotency::Idempotent);
    let mut missing_parents = 0;
    loop {
        let generation = attempts.generation().await?;
        let child = || format!("{}/ticket", line.full_path());
        let parents = if missing_parents > 0 {
            create_parents_in(client.shared(), &generation, &child(), line.kind())
        } else {
            Vec::new()
        };
        let mut intent = Intent::submit(line, &generation, data.clone());
        let mut list = generation.session.submit(list_request(line), Lane::Call);
        let outcome = intent.create.by(attempts.deadline).await;
        // The servers may keep a session that was given up, and a node of it, for a while.
        intent.unknown = matches!(outcome, Outcome::Unknown(Cause::Ended(_)));
        if let Outcome::Unknown(Cause::LinkLost) = outcome
            && !planted!(BlindCreateRetry)
            && let Some((path, stat)) = intent.find(&attempts).await?
        {
            return ticket(line, &generation, path, stat.czxid);
        }
        #[cfg(docent_planted)]
        if let Some(ticket) = intent.take_over(line, &attempts).await? {
            return Ok(ticket);
        }
        match attempts.next(&generation, outcome).await? {
            Some(Ok(Response::Created { path, stat: Some(stat) })) => {
                // From here on the ticket's drop deletes the node.
                let mut ticket = ticket(line, &generation, path, stat.czxid)?;
                // The listing counts only if it was made after the create, on the same link.
                if let Outcome::Reply(reply) = list.by(attempts.deadline).await
                    && let Ok(Response::Children { names, .. }) = reply.result
                {
                    generation.lost_creates.pass_by(line.full_path(), &names);
                    line.refuse_all_others(Some(ticket.name()), &names)?;
                    ticket.position = line.position(ticket.name(), &names);
                    ticket.ahead = line.ahead_of(&ticket, &names);
                }
                return Ok(ticket);
            }
            Some(Err(Code::NO_NODE)) if missing_parents < PARENT_ROUNDS => {
                let refused = Box::pin(refused_parent(client.shared(), "draw", &child(), parents)).await;
                refused.map_or(Ok(()), Err)?;
                missing_parents += 1;
            }
            Some(Ok(other)) => return Err(unexpected("draw", &other)),
            Some(Err(code)) => return Err(Error::from_code(code, "draw").at(line.path())),
            None => {}
        }
    }
}

pub(super) fn list_request(line: &Line) -> Request {
    Request::GetChildren2 { path: line.full_path().to_owned(), watch: false }
}

fn ticket(
    line: &Line,
    generation: &Arc<SessionGeneration>,
    path: String,
    czxid: i64,
) -> Result<Ticket, Error> {
    let sequence = sequence(path.rsplit('/').next().unwrap_or_default(), line.marker()).unwrap_or(-1);
    let czxid = if planted!(FenceIsSequence) { sequence.into() } else { czxid };
    let ticket = Ticket {
        line: line.clone(),
        generation: Arc::clone(generation),
        node: Arc::new(OwnedNode::by_name(Arc::clone(generation), path, czxid)),
        taken: generation.clock.now(),
        position: Position::Unlisted,
        ahead: None,
        held: false,
    };
    if is_in_danger_zone(sequence) {
        return Err(Error::new(ErrorKind::SequenceExhausted, "draw")
            .at(line.path())
            .because(format!("the number {sequence} is near the end of the servers' counter")));
    }
    if is_running_out(sequence) {
        tracing::warn!(path = %line.path(), sequence, "less than half of the path's sequence numbers is left");
    }
    Ok(ticket)
}
