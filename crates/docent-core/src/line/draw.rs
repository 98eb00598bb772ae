use super::name::{is_in_danger_zone, is_running_out, protected, sequence};
use super::position::Position;
use super::{Line, Ticket};
use crate::cleanup::{OwnedNode, find};
use crate::client::{PARENT_ROUNDS, create_parents_in, refused_parent};
use crate::error::Error;
use crate::guard::SessionGeneration;
use crate::operation::{Attempts, Idempotency, unexpected};
use crate::session::{Cause, Lane, Outcome, Pending};
use bytes::Bytes;
use docent_proto::{Code, Create, CreateMode, MultiOp, MultiResult, Request, Response, Stat, parent};
use std::sync::Arc;
use uuid::Uuid;

/// A create in flight, of one node or of several nodes in one transaction whose names share an id. If the
/// intent is dropped, the cleanup worker gets the id, whatever happened to the reply. The worker deletes the
/// nodes as soon as the outcome of the create is known.
pub(super) struct Intent {
    pub(super) generation: Arc<SessionGeneration>,
    /// Full path without the number.
    pub(super) prefix: String,
    pub(super) create: Pending,
    /// True if the reply was lost, so the nodes may exist.
    pub(super) unknown: bool,
}

impl Intent {
    pub(super) fn submit(
        line: &Line,
        generation: &Arc<SessionGeneration>,
        data: &Bytes,
        count: usize,
    ) -> Self {
        let one = create(line, generation.fresh_id(), data);
        let prefix = one.path.clone();
        let request = match count {
            1 => Request::Create(one),
            _ => Request::Multi(vec![MultiOp::Create(one); count]),
        };
        let create = generation.session.submit(request, Lane::Call);
        Self { generation: Arc::clone(generation), prefix, create, unknown: false }
    }
}

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

/// Maximum number of nodes created, or checked, in one request.
const MAX_TOGETHER: usize = 1_000;

/// Overhead in bytes of one operation in a multi, besides its own fields.
const HEADER: usize = 32;

/// Tickets created by one transaction.
pub(super) struct Drawn {
    pub(super) tickets: Vec<Ticket>,
    /// Names in the line, listed right after the tickets were created.
    pub(super) names: Option<Vec<String>>,
    /// True if the first request created the tickets.
    pub(super) at_once: bool,
}

/// Creates a ticket and lists the line in one round trip.
pub(super) async fn draw(line: &Line, data: Option<Bytes>) -> Result<Ticket, Error> {
    let Drawn { mut tickets, names, .. } = draw_together(line, data, 1, true).await?;
    let Some(mut ticket) = tickets.pop() else { return Err(unexpected(line.operation(), &Response::Empty)) };
    if let Some(names) = names {
        line.refuse_all_other_kinds(Some(ticket.name()), &names).await?;
        ticket.position = line.position(ticket.name(), &names);
        ticket.ahead = line.ahead_of(&ticket, &names);
    }
    Ok(ticket)
}

/// Returns the number of tickets that fit into one request.
pub(super) fn max_together(line: &Line, data: Option<&Bytes>) -> usize {
    let data = data.cloned().unwrap_or_else(|| Bytes::from(line.client().shared().identity.clone()));
    let one = HEADER + Request::Create(create(line, Uuid::nil(), &data)).payload_len();
    // Leave room for what the servers add to the transaction, such as the paths with their numbers.
    (line.client().max_request() / 2 / one).clamp(1, MAX_TOGETHER)
}

/// Creates `count` tickets in one transaction, and lists the line in the same round trip if `lists` is true.
pub(super) async fn draw_together(
    line: &Line,
    data: Option<Bytes>,
    count: usize,
    lists: bool,
) -> Result<Drawn, Error> {
    line.refuse_stopping()?;
    let client = line.client();
    let data = Arc::new(data.unwrap_or_else(|| Bytes::from(client.shared().identity.clone())));
    // The create can be repeated: an earlier create that was applied is found by its id, and deleted.
    let mut attempts = client.attempts(line.operation(), line.path(), Idempotency::Idempotent);
    let mut missing_parents = 0;
    let mut at_once = true;
    loop {
        let generation = attempts.generation().await?;
        let child = || format!("{}/ticket", line.full_path());
        let parents = if missing_parents > 0 {
            create_parents_in(client.shared(), &generation, &child(), line.kind())
        } else {
            Vec::new()
        };
        let mut intent = Intent::submit(line, &generation, &data, count);
        let mut list = lists.then(|| generation.session.submit(list_request(line), Lane::Call));
        let outcome = intent.create.by(attempts.deadline).await;
        // The servers may keep an abandoned session and its node for a while.
        intent.unknown = matches!(outcome, Outcome::Unknown(Cause::Ended(_)));
        if let Outcome::Unknown(Cause::LinkLost) = outcome
            && !planted!(BlindCreateRetry)
            && let Some((paths, stat)) = intent.find(&attempts).await?
        {
            let tickets =
                tickets(line, &generation, &data, paths.into_iter().map(|path| (path, stat.czxid)))?;
            // If another client deleted some of the nodes, drop the remaining tickets.
            if tickets.len() == count {
                return Ok(Drawn { tickets, names: None, at_once: false });
            }
        }
        #[cfg(docent_planted)]
        if let Some(ticket) = intent.take_over(line, &data, &attempts).await? {
            return Ok(Drawn { tickets: vec![ticket], names: None, at_once: false });
        }
        let zxid = if let Outcome::Reply(reply) = &outcome { reply.zxid } else { 0 };
        let answer = attempts.next(&generation, outcome).await?;
        let answer = answer.map(|answer| answer.map_err(Refusal::Code));
        match answer.map(|answer| answer.and_then(|response| created_nodes(response, zxid))) {
            Some(Ok(created)) => {
                // From here on, dropping a ticket deletes its node.
                let tickets = tickets(line, &generation, &data, created)?;
                // The listing counts only if it was read after the create, on the same link.
                let mut names = None;
                if let Some(list) = &mut list
                    && let Outcome::Reply(reply) = list.by(attempts.deadline).await
                    && let Ok(Response::Children { names: listed, .. }) = reply.result
                {
                    generation.lost_creates.observe_listing(line.full_path(), &listed);
                    names = Some(listed);
                }
                return Ok(Drawn { tickets, names, at_once });
            }
            Some(Err(Refusal::Code(Code::NO_NODE))) if missing_parents < PARENT_ROUNDS => {
                let refused =
                    Box::pin(refused_parent(client.shared(), line.operation(), &child(), parents)).await;
                refused.map_or(Ok(()), Err)?;
                missing_parents += 1;
            }
            Some(Err(Refusal::Unexpected(response))) => return Err(unexpected(line.operation(), &response)),
            Some(Err(Refusal::Code(code))) => return Err(line.refused(code).needing("CREATE")),
            None => {}
        }
        at_once = false;
    }
}

/// Returns the request to create a ticket.
pub(super) fn create(line: &Line, id: Uuid, data: &Bytes) -> Create {
    let prefix = format!("{}/{}", line.full_path(), protected(id, line.marker()));
    let acl = line.client().shared().acl(&prefix);
    Create::new(prefix, data.clone(), acl, CreateMode::EphemeralSequential, 0)
}

/// Answer of a server that created nothing.
enum Refusal {
    Code(Code),
    /// A response that does not fit the request.
    Unexpected(Response),
}

/// Returns the created nodes with their transaction ids. Uses `zxid` if the server does not report an id, as
/// in a multi.
fn created_nodes(response: Response, zxid: i64) -> Result<Vec<(String, i64)>, Refusal> {
    match response {
        Response::Created { path, stat: Some(stat) } => Ok(vec![(path, stat.czxid)]),
        Response::Multi(results) => match refusal(&results) {
            Some(code) => Err(Refusal::Code(code)),
            None => match results.iter().map(|result| created(result, zxid)).collect() {
                Some(created) => Ok(created),
                None => Err(Refusal::Unexpected(Response::Multi(results))),
            },
        },
        other => Err(Refusal::Unexpected(other)),
    }
}

fn created(result: &MultiResult, zxid: i64) -> Option<(String, i64)> {
    match result {
        MultiResult::Created { path, stat } => {
            Some((path.clone(), stat.as_ref().map_or(zxid, |stat| stat.czxid)))
        }
        _ => None,
    }
}

/// Returns the code with which a multi was refused.
pub(super) fn refusal(results: &[MultiResult]) -> Option<Code> {
    MultiResult::first_failure(results).map(|(_, code)| code)
}

pub(super) fn list_request(line: &Line) -> Request {
    Request::GetChildren2 { path: line.full_path().to_owned(), watch: false }
}

/// Creates the tickets for these nodes. If one is refused, the others are dropped, which deletes their nodes.
fn tickets(
    line: &Line,
    generation: &Arc<SessionGeneration>,
    data: &Arc<Bytes>,
    nodes: impl IntoIterator<Item = (String, i64)>,
) -> Result<Vec<Ticket>, Error> {
    let nodes = nodes.into_iter();
    let tickets: Vec<_> = nodes.map(|(path, czxid)| ticket(line, generation, data, path, czxid)).collect();
    tickets.into_iter().collect()
}

pub(super) fn ticket(
    line: &Line,
    generation: &Arc<SessionGeneration>,
    data: &Arc<Bytes>,
    path: String,
    czxid: i64,
) -> Result<Ticket, Error> {
    let sequence = sequence(path.rsplit('/').next().unwrap_or_default(), line.marker()).unwrap_or(-1);
    let czxid = if planted!(FenceIsSequence) { sequence.into() } else { czxid };
    let ticket = Ticket {
        line: line.clone(),
        generation: Arc::clone(generation),
        node: Arc::new(OwnedNode::by_name(Arc::clone(generation), path, czxid)),
        data: Arc::clone(data),
        taken: generation.clock.now(),
        position: Position::Unlisted,
        ahead: None,
        held: false,
    };
    if is_in_danger_zone(sequence) {
        let detail = format!("sequence number {sequence} is near the end of the servers' counter");
        return Err(Error::sequence_exhausted(line.operation(), detail).at(line.path()));
    }
    if is_running_out(sequence) {
        // Event: The sequence number of a new node in the line exceeds half of the servers' 32-bit counter.
        // When the counter nears its end, the line refuses new places.
        // Action: Delete the node at `path` while no one uses it, so that the numbers start at 0 again.
        tracing::warn!(target: "docent::lock", client = %line.client().label(), path = %line.full_path(), sequence, "less than half of the path's sequence numbers are left");
    }
    Ok(ticket)
}
