//! The child by which a node with a time to live stays: servers delete such a node when it had neither a
//! change nor a child for that long. Watchers of the node are not told of changes of the child.

use super::trouble::Trouble;
use crate::guard::SessionGeneration;
use crate::node::CreateMode;
use crate::session::Lane;
use crate::session::ask::ask;
use bytes::Bytes;
use docent_proto::{Acl, Code, Create, Request};
use std::sync::Arc;
use std::time::Duration;

/// The path of the child of the node at `full`, as Curator's `PersistentTtlNode` names it.
pub(super) fn path(full: &str) -> String {
    format!("{full}/touch")
}

/// Time from one touch to the next: two may fail before the child expires.
pub(super) fn pause(ttl: Duration) -> Duration {
    ttl / 3
}

/// Sets the child's data, or makes it. Applied late, either does no harm: the child expires by itself.
pub(super) async fn touch(
    generation: &SessionGeneration,
    full: &str,
    acl: Arc<[Acl]>,
    ttl: Duration,
) -> Result<Result<(), Code>, Trouble> {
    let path = path(full);
    let set = || Request::SetData { path: path.clone(), data: Some(Bytes::new()), version: -1 };
    let (mode, ttl) = CreateMode::PersistentTtl(ttl).to_proto();
    let create = || Request::Create(Create::new(path.clone(), Bytes::new(), Arc::clone(&acl), mode, ttl));
    let refused = match refusal(generation, set).await? {
        Some(Code::NO_NODE) => refusal(generation, create).await?,
        refused => refused,
    };
    match refused {
        // The node itself is gone: the watch on it tells.
        None | Some(Code::NODE_EXISTS | Code::NO_NODE) => Ok(Ok(())),
        Some(code) => Ok(Err(code)),
    }
}

/// Deletes the child, so that the node can be deleted.
pub(super) async fn remove(generation: &SessionGeneration, full: &str) -> Result<(), Trouble> {
    // Applied late, it is made anew by the next touch.
    let delete = || Request::Delete { path: path(full), version: -1 };
    // Where it is refused, the deletion of the node is, too, and says why.
    refusal(generation, delete).await.map(drop)
}

async fn refusal(
    generation: &SessionGeneration,
    request: impl Fn() -> Request,
) -> Result<Option<Code>, Trouble> {
    match ask(generation, Lane::Call, request).await {
        Ok(reply) => Ok(reply.result.err()),
        Err(stop) => Err(Trouble::from(crate::session::Cause::from(stop))),
    }
}
