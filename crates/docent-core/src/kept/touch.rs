//! The child that keeps a node with a time to live alive: servers delete such a node if it had neither a
//! change nor a child for that time. Changes of the child notify no watchers of the node.

use super::step_error::StepError;
use crate::guard::SessionGeneration;
use crate::node::CreateMode;
use crate::session::Lane;
use crate::session::context::send_until_answered;
use bytes::Bytes;
use docent_proto::{Acl, Code, Create, Request};
use std::sync::Arc;
use std::time::Duration;

/// Returns the path of the child of the node at `full`, as named by Curator's `PersistentTtlNode`.
pub(super) fn path(full: &str) -> String {
    format!("{full}/touch")
}

/// Time from one touch to the next: two touches may fail before the child expires.
pub(super) fn pause(ttl: Duration) -> Duration {
    ttl / 3
}

/// Writes the child, creating it if necessary. A late write does no harm, because the child expires.
pub(super) async fn touch(
    generation: &SessionGeneration,
    full: &str,
    acl: Arc<[Acl]>,
    ttl: Duration,
) -> Result<Result<(), Code>, StepError> {
    let path = path(full);
    let set = || Request::SetData { path: path.clone(), data: Some(Bytes::new()), version: -1 };
    let (mode, ttl) = CreateMode::PersistentTtl(ttl).to_proto();
    let create = || Request::Create(Create::new(path.clone(), Bytes::new(), Arc::clone(&acl), mode, ttl));
    let refused = match refusal(generation, set).await? {
        Some(Code::NO_NODE) => refusal(generation, create).await?,
        refused => refused,
    };
    match refused {
        // The node itself does not exist, which its watch reports.
        None | Some(Code::NODE_EXISTS | Code::NO_NODE) => Ok(Ok(())),
        Some(code) => Ok(Err(code)),
    }
}

/// Deletes the child, so that the node can be deleted.
pub(super) async fn remove(generation: &SessionGeneration, full: &str) -> Result<(), StepError> {
    // If the delete is applied late, the next touch re-creates the child.
    let delete = || Request::Delete { path: path(full), version: -1 };
    // If this delete is refused, so is the deletion of the node, which reports the error.
    refusal(generation, delete).await.map(drop)
}

async fn refusal(
    generation: &SessionGeneration,
    request: impl Fn() -> Request,
) -> Result<Option<Code>, StepError> {
    match send_until_answered(generation, Lane::Call, request).await {
        Ok(reply) => Ok(reply.result.err()),
        Err(stop) => Err(StepError::from(crate::session::Cause::from(stop))),
    }
}
