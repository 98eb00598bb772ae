//! Deletes of the nodes of claims, each in its own session.

use super::{Left, PAUSE, is_final};
use crate::claim::ClaimNode;
use crate::client::resolve;
use crate::epoch::Epoch;
use crate::session::{Cause, Lane, Outcome, Pending, SessionEnd};
use bytes::Bytes;
use docent_proto::{Code, MultiOp, Request};
use std::sync::Arc;

/// Stands for a delete that may have been sent: whether the node is there is looked at before another.
pub(super) const LOOK_FIRST: Outcome = Outcome::NotSent(Cause::LinkLost);

/// Deletes the node of a claim, in its own session: with that it would go anyway, and in another one the name may be that of a
/// claim of somebody else. For the same reason a delete whose reply was lost is sent again only if the node is still the same.
pub(super) async fn delete_claim(node: &ClaimNode, reply: Option<Pending>) -> Left {
    let session = &node.epoch.session;
    let mut reply = reply.unwrap_or_else(|| session.submit(delete_once(&node.path), Lane::Cleanup));
    loop {
        match reply.await {
            Outcome::Reply(answer) => match answer.refusal() {
                None | Some(Code::NO_NODE | Code::SESSION_EXPIRED) => return Left::Gone,
                Some(code) if is_final(code) => {
                    tracing::error!(path = %node.path, epoch = node.epoch.number, %code, "a claim could not be deleted");
                    return Left::Refused(code);
                }
                Some(_) => tokio::time::sleep(PAUSE).await,
            },
            Outcome::NotSent(Cause::Ended(end)) | Outcome::Unknown(Cause::Ended(end)) => return ended(end),
            Outcome::NotSent(Cause::LinkLost) | Outcome::Unknown(Cause::LinkLost) => {}
            Outcome::NotSent(_) | Outcome::Unknown(_) => tokio::time::sleep(PAUSE).await,
        }
        match resolve::stat(&node.epoch, &node.path).await {
            Ok(Some(stat)) if stat.czxid == node.czxid => {}
            Ok(_) => return Left::Gone,
            Err(Cause::Ended(end)) => return ended(end),
            Err(_) => {
                tokio::time::sleep(PAUSE).await;
                reply = Pending::ready(LOOK_FIRST);
                continue;
            }
        }
        reply = session.submit(delete_once(&node.path), Lane::Cleanup);
    }
}

/// What becomes of a claim whose session has ended.
fn ended(end: SessionEnd) -> Left {
    match end {
        SessionEnd::Closed => Left::Closed,
        // It goes with its session, or went.
        _ => Left::Gone,
    }
}

/// Finds out whether claims were made, and deletes those that are ours.
pub(super) async fn undo_claims(epoch: Arc<Epoch>, paths: Vec<String>, id: Bytes, reply: Option<Pending>) {
    if let Some(reply) = reply {
        match reply.await {
            Outcome::Reply(answer) if answer.refusal().is_some() => return,
            Outcome::NotSent(_) | Outcome::Unknown(Cause::Ended(_)) => return,
            _ => {}
        }
    }
    for path in paths {
        let found = loop {
            match resolve::read(&epoch, &path).await {
                Ok(found) => break found,
                Err(Cause::Ended(_)) => return,
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        };
        if let Some((Some(data), stat)) = found
            && data == id
        {
            let node = ClaimNode::new(Arc::clone(&epoch), path, stat.czxid);
            let _ = delete_claim(&node, None).await;
        }
    }
}

/// A delete in a multi: a session sends one that is alone again by itself when its reply was lost.
pub(super) fn delete_once(path: &str) -> Request {
    Request::Multi(vec![MultiOp::Delete { path: path.to_owned(), version: -1 }])
}
