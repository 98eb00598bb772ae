//! Creation of a session's internal nodes, in a folder in which the client may create nodes (decision 26).

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

/// Reason why no node was created.
#[derive(Debug)]
pub(crate) enum NoOwnNode {
    Cause(Cause),
    /// The servers refuse to create the node in any folder. The error names the last folder.
    Refused(Error),
}

impl From<Cause> for NoOwnNode {
    fn from(cause: Cause) -> Self {
        Self::Cause(cause)
    }
}

/// A create of a node in flight. If it is dropped, the node is deleted as soon as the outcome of the create
/// is known.
struct PendingCreate {
    generation: Arc<SessionGeneration>,
    path: String,
    create: Pending,
    /// True if the reply was lost: the node may be created late.
    unknown: bool,
    /// `None` after the place was passed to the node, or to the job that undoes the create.
    place: Option<OwnedSemaphorePermit>,
}

impl PendingCreate {
    fn submit(
        client: &Shared,
        generation: &Arc<SessionGeneration>,
        folder: &str,
        place: Option<OwnedSemaphorePermit>,
    ) -> Self {
        // A fresh name, never used again: if the create is applied late, no one uses the node.
        let path = format!("{folder}/{}", generation.fresh_id());
        let create = Create::new(path.clone(), Bytes::new(), client.acl(&path), CreateMode::Ephemeral, 0);
        let create = generation.session.submit(Request::Create(create), Lane::Cleanup);
        Self { generation: Arc::clone(generation), path, create, unknown: false, place }
    }
}

impl Drop for PendingCreate {
    fn drop(&mut self) {
        let reply = self.create.abandon();
        if reply.is_some() || self.unknown {
            let path = std::mem::take(&mut self.path);
            self.generation.cleanup.undo_own_node(&self.generation, path, reply, self.place.take());
        }
    }
}

/// Creates an internal ephemeral node of the session, and returns its full path, whose name is used only
/// once. If the session has no folder yet, or lost it, a folder is searched for near the paths to be written.
/// For a marker, `place` is its place among the markers in use; if the create must be undone, it is taken for
/// that.
///
/// # Cancel safety
/// Cancel safe: a node that was being created is deleted.
pub(crate) async fn create_own_node(
    client: &Shared,
    generation: &Arc<SessionGeneration>,
    near: Near<'_>,
    place: &mut Option<OwnedSemaphorePermit>,
    deadline: Instant,
) -> Result<String, NoOwnNode> {
    let mut attempts = Attempts { client, generation, deadline, place };
    loop {
        if let Some(folder) = generation.own_folder.get() {
            match attempts.in_folder(&folder, false).await? {
                Ok(node) => return Ok(node),
                // The folder was deleted, like any empty container, or may no longer be used.
                Err(code) => {
                    // Event: The folder in which a session keeps its internal nodes was deleted or may no
                    // longer be used. The client searches for another folder.
                    tracing::debug!(target: "docent::cleanup", client = %client.label, %folder, %code, "cannot create nodes in the session's internal folder; searching for another folder");
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
    place: &'a mut Option<OwnedSemaphorePermit>,
}

impl Attempts<'_> {
    /// Creates the node in `folder`, in one round trip. If `creates_folder` is true, creates the folder
    /// first. The inner error is the code with which the servers refuse the folder or the node.
    async fn in_folder(&mut self, folder: &str, creates_folder: bool) -> Result<Result<String, Code>, Cause> {
        let folder_create = creates_folder.then(|| self.submit_folder(folder, self.client.acl(folder)));
        let mut create = PendingCreate::submit(self.client, self.generation, folder, self.place.take());
        let outcome = create.create.by(self.deadline).await;
        // A node whose create got no reply is never used: the create might be applied after the node's delete
        // (decision 11).
        create.unknown = matches!(outcome, Outcome::Unknown(_));
        let answer = outcome.answer()?;
        *self.place = create.place.take();
        let Err(code) = answer.result else { return Ok(Ok(std::mem::take(&mut create.path))) };
        // Another client's node, although names are unique: try another name.
        if code == Code::NODE_EXISTS {
            return Err(Cause::LinkLost);
        }
        // If the folder was refused, return that code.
        match folder_create {
            Some(mut folder_create) => match folder_create.by(self.deadline).await.answer()?.result {
                Ok(_) | Err(Code::NODE_EXISTS) => Ok(Err(code)),
                Err(code) => Ok(Err(code)),
            },
            None => Ok(Err(code)),
        }
    }

    fn submit_folder(&self, folder: &str, acl: Arc<[docent_proto::Acl]>) -> Pending {
        let (mode, _) = self.client.parents().mode().to_proto();
        let create = Create::new(folder.to_owned(), Bytes::new(), acl, mode, 0);
        self.generation.session.submit(Request::Create(create), Lane::Cleanup)
    }

    /// Creates the node in the first folder in which the client may create nodes.
    async fn search(&mut self, near: Near<'_>) -> Result<String, NoOwnNode> {
        let mut refused = None;
        for base in bases(self.client, near) {
            match self.create_below(&base).await? {
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

    /// Creates the node in `base`. The inner error is the servers' reason for refusing.
    async fn create_below(&mut self, base: &str) -> Result<Result<String, Error>, Cause> {
        let kind = self.client.parents();
        let name = self.generation.own_folder.name(|| self.generation.fresh_id().to_string()).to_owned();
        let Places { shared, in_shared, beside } = Places::of(base, &name, kind);
        let creates_folder = kind == ParentKind::Container;
        let mut code = Code::NO_NODE;
        for round in 0.. {
            match self.in_folder(&in_shared, creates_folder).await? {
                Ok(node) => return Ok(Ok(self.found(&in_shared, node))),
                Err(Code::NO_NODE) => {}
                Err(refused) => {
                    code = refused;
                    break;
                }
            }
            // The containers may be deleted as soon as they are created.
            if round >= PARENT_ROUNDS {
                sleep(PAUSE).await;
            }
            if let Err(refusal) = self.create_shared_folder(base, &shared).await? {
                return Ok(Err(refusal));
            }
        }
        if let Some(beside) = beside.filter(|_| !planted!(OwnFolderOfTheFirst)) {
            match self.in_folder(&beside, true).await? {
                Ok(node) => return Ok(Ok(self.found(&beside, node))),
                // The base was deleted in the meantime.
                Err(Code::NO_NODE) => return Err(Cause::LinkLost),
                Err(refused) => code = refused,
            }
        }
        Ok(Err(self.refusal(base, code)))
    }

    fn found(&self, folder: &str, node: String) -> String {
        self.generation.own_folder.set(folder);
        node
    }

    /// Creates the folder that clients share in `base`, and its ancestors. The inner error is the servers'
    /// reason for refusing.
    async fn create_shared_folder(&self, base: &str, shared: &str) -> Result<Result<(), Error>, Cause> {
        let (client, generation) = (self.client, self.generation);
        let parents = create_parents_by(client, generation, shared, client.parents(), Lane::Cleanup);
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
            // The access control list may not be read, but the folder may be writable.
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
            "needs CREATE here, or on a folder above, to create the session's internal nodes for exact writes; or an \
             administrator creates \"/_docent\" with READ and CREATE for everyone",
        )
    }
}
