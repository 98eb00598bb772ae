//! Creates of a session's own nodes, in a folder that the client may create in (decision 26).

use super::own_folder::{Places, bases};
use super::{Near, PAUSE};
use crate::client::{PARENT_ROUNDS, ParentKind, create_parents_by, refused_parent};
use crate::error::Error;
use crate::guard::SessionGeneration;
use crate::node::shared_list;
use crate::operation::Shared;
use crate::session::{Cause, Lane, Outcome, Pending};
use bytes::Bytes;
use docent_proto::{Code, Create, CreateMode, Request, Response};
use std::sync::{Arc, PoisonError};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep, timeout_at};

/// Ephemeral node that was created.
pub(crate) struct OwnNode {
    /// Full path. Its name was never used before and never will be again.
    pub(crate) path: String,
    /// Place among the markers in use, of a marker.
    pub(super) place: Option<OwnedSemaphorePermit>,
}

/// Reason why there is no node.
#[derive(Debug)]
pub(crate) enum NoOwnNode {
    Cause(Cause),
    /// The servers refuse to create it in any folder. The error names the last one.
    Refused(Error),
}

impl From<Cause> for NoOwnNode {
    fn from(cause: Cause) -> Self {
        Self::Cause(cause)
    }
}

/// Create of a node on its way. If it is dropped, the node is deleted as soon as its fate is known.
struct Making {
    generation: Arc<SessionGeneration>,
    path: String,
    create: Pending,
    /// True when the reply was lost: the node may be made late.
    unknown: bool,
    /// `None` once it went to the node, or to what undoes it.
    place: Option<OwnedSemaphorePermit>,
}

impl Making {
    fn submit(
        client: &Shared,
        generation: &Arc<SessionGeneration>,
        folder: &str,
        place: Option<OwnedSemaphorePermit>,
    ) -> Self {
        // A fresh name, never used again: a create that is applied late makes a node that nobody asks for.
        let path = format!("{folder}/{}", generation.fresh_id());
        let create = Create::new(path.clone(), Bytes::new(), client.acl(&path), CreateMode::Ephemeral, 0);
        let create = generation.session.submit(Request::Create(create), Lane::Cleanup);
        Self { generation: Arc::clone(generation), path, create, unknown: false, place }
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        let reply = self.create.abandon();
        if reply.is_some() || self.unknown {
            let path = std::mem::take(&mut self.path);
            self.generation.cleanup.undo_own_node(&self.generation, path, reply, self.place.take());
        }
    }
}

/// Answer of the servers to an attempt in one folder.
enum Answer {
    Made(OwnNode),
    /// They refuse the folder or the node.
    Refused(Code),
}

/// Creates an ephemeral node of the session's own; `place` goes with it. Its folder is looked for, near what
/// is about to be written, if the session has none yet or lost it.
///
/// # Cancel safety
/// Cancel safe: a node that was being created is deleted.
pub(crate) async fn create_own_node(
    client: &Shared,
    generation: &Arc<SessionGeneration>,
    near: Near<'_>,
    place: Option<OwnedSemaphorePermit>,
    deadline: Instant,
) -> Result<OwnNode, NoOwnNode> {
    let mut attempts = Attempts { client, generation, deadline, place };
    loop {
        if let Some(folder) = generation.own_folder.get() {
            match attempts.in_folder(&folder, false).await? {
                Answer::Made(node) => return Ok(node),
                // It went, as an empty container does, or it may not be used any more.
                Answer::Refused(code) => {
                    tracing::debug!(%folder, %code, "looking for another folder for the session's own nodes");
                    generation.own_folder.forget(&folder);
                }
            }
        }
        let search = timeout_at(deadline, generation.own_folder.search.lock()).await;
        let _search = search.map_err(|_| NoOwnNode::Cause(Cause::Deadline))?;
        if generation.own_folder.get().is_none() {
            let found = attempts.search(near).await;
            if planted!(NoFolderIsNoNode) && matches!(found, Err(NoOwnNode::Cause(Cause::LinkLost))) {
                return Err(NoOwnNode::Refused(Error::from_code(Code::NO_NODE, "transaction")));
            }
            return found;
        }
    }
}

struct Attempts<'a> {
    client: &'a Shared,
    generation: &'a Arc<SessionGeneration>,
    deadline: Instant,
    place: Option<OwnedSemaphorePermit>,
}

impl Attempts<'_> {
    /// Creates the node in `folder`, and that before it if it `makes_folder`, in one trip.
    async fn in_folder(&mut self, folder: &str, makes_folder: bool) -> Result<Answer, Cause> {
        let made = makes_folder.then(|| self.submit_folder(folder, self.client.acl(folder)));
        let mut making = Making::submit(self.client, self.generation, folder, self.place.take());
        let outcome = making.create.by(self.deadline).await;
        // A node whose create had no reply is never used: the create might come after its delete
        // (decision 11).
        making.unknown = matches!(outcome, Outcome::Unknown(_));
        let answer = outcome.answer()?;
        let place = making.place.take();
        let Err(code) = answer.result else {
            return Ok(Answer::Made(OwnNode { path: std::mem::take(&mut making.path), place }));
        };
        self.place = place;
        // Not ours, whatever drew its name: another one is tried.
        if code == Code::NODE_EXISTS {
            return Err(Cause::LinkLost);
        }
        // Where the folder was refused, that is the reason.
        match made {
            Some(mut made) => match made.by(self.deadline).await.answer()?.result {
                Ok(_) | Err(Code::NODE_EXISTS) => Ok(Answer::Refused(code)),
                Err(code) => Ok(Answer::Refused(code)),
            },
            None => Ok(Answer::Refused(code)),
        }
    }

    fn submit_folder(&self, folder: &str, acl: Arc<[docent_proto::Acl]>) -> Pending {
        let (mode, _) = self.client.config.parents.mode().to_proto();
        let create = Create::new(folder.to_owned(), Bytes::new(), acl, mode, 0);
        self.generation.session.submit(Request::Create(create), Lane::Cleanup)
    }

    /// Creates the node in the first folder in which the client may.
    async fn search(&mut self, near: Near<'_>) -> Result<OwnNode, NoOwnNode> {
        let mut refused = None;
        for base in bases(self.client, near) {
            match self.in_base(&base).await? {
                Ok(node) => {
                    self.client.own_base.lock().unwrap_or_else(PoisonError::into_inner).replace(base);
                    return Ok(node);
                }
                Err(refusal) => refused = Some(refusal),
            }
            if planted!(OwnFolderOfTheFirst) {
                break;
            }
        }
        let error = refused.unwrap_or_else(|| Error::from_code(Code::NO_AUTH, "transaction"));
        Err(NoOwnNode::Refused(error))
    }

    /// Creates the node in `base`. The error says why the servers refuse that.
    async fn in_base(&mut self, base: &str) -> Result<Result<OwnNode, Error>, Cause> {
        let kind = self.client.config.parents;
        let name = self.generation.own_folder.name(|| self.generation.fresh_id().to_string()).to_owned();
        let Places { shared, in_shared, beside } = Places::of(base, &name, kind);
        let makes_folder = kind == ParentKind::Container;
        let mut code = Code::NO_NODE;
        for round in 0.. {
            match self.in_folder(&in_shared, makes_folder).await? {
                Answer::Made(node) => return Ok(Ok(self.found(&in_shared, node))),
                Answer::Refused(Code::NO_NODE) => {}
                Answer::Refused(refused) => {
                    code = refused;
                    break;
                }
            }
            // The containers may go as soon as they are made.
            if round >= PARENT_ROUNDS {
                sleep(PAUSE).await;
            }
            if let Err(refusal) = self.make_shared(base, &shared).await? {
                return Ok(Err(refusal));
            }
        }
        if let Some(beside) = beside.filter(|_| !planted!(OwnFolderOfTheFirst)) {
            match self.in_folder(&beside, true).await? {
                Answer::Made(node) => return Ok(Ok(self.found(&beside, node))),
                // The base went meanwhile.
                Answer::Refused(Code::NO_NODE) => return Err(Cause::LinkLost),
                Answer::Refused(refused) => code = refused,
            }
        }
        Ok(Err(self.refusal(base, code)))
    }

    fn found(&self, folder: &str, node: OwnNode) -> OwnNode {
        self.generation.own_folder.set(folder);
        node
    }

    /// Creates the folder that clients share in `base`, and what is above it. The error says why the servers
    /// refuse that.
    async fn make_shared(&self, base: &str, shared: &str) -> Result<Result<(), Error>, Cause> {
        let (client, generation) = (self.client, self.generation);
        let parents = create_parents_by(client, generation, shared, client.config.parents, Lane::Cleanup);
        let own = client.acl(shared);
        let list = Request::GetAcl { path: if base.is_empty() { "/" } else { base }.to_owned() };
        let list = generation.session.submit(list, Lane::Cleanup).by(self.deadline).await.answer()?;
        let acl = match list.result {
            _ if planted!(OwnFolderOfTheFirst) => own,
            Ok(Response::Acl { acl, .. }) => shared_list(acl, &own),
            Err(Code::NO_NODE) => {
                return Ok(match refused_parent(client, "transaction", shared, parents).await {
                    Some(error) => Err(error),
                    None => Ok(()),
                });
            }
            // It may not be read, but perhaps changed.
            _ => own,
        };
        drop(parents);
        match self.submit_folder(shared, acl).by(self.deadline).await.answer()?.result {
            Ok(_) | Err(Code::NODE_EXISTS | Code::NO_NODE) => Ok(Ok(())),
            Err(code) => Ok(Err(self.refusal(base, code))),
        }
    }

    fn refusal(&self, base: &str, code: Code) -> Error {
        let base = self.client.namespace.relative(if base.is_empty() { "/" } else { base });
        let error = Error::from_code(code, "transaction").at(&base);
        if code != Code::NO_AUTH {
            return error;
        }
        error.because(
            "needs CREATE here, or on a folder above, for the session's own nodes that exact writes set; or an \
             administrator creates \"/_docent\" with READ and CREATE for everyone",
        )
    }
}
