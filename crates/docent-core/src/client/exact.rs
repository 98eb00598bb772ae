//! Exact writes: several writes in one multi with a marker of ours, so that a lost reply can be resolved.
//!
//! A marker is an ephemeral node of the session whose data is the id of the last exact write made with it. After a lost
//! reply the marker says whether that write was applied. A session has one for each exact write under way at the same time,
//! because a later write would hide what became of an earlier one.

use super::call::{Attempts, unexpected};
use super::create::{PARENT_ROUNDS, create_parents, refused_parent};
use super::{Client, resolve};
use crate::cleanup::Leaving;
use crate::epoch::Epoch;
use crate::error::{Error, ErrorKind};
use crate::session::{Cause, Lane, Outcome};
use bytes::Bytes;
use docent_proto::{Code, Create, CreateMode, MultiOp, MultiResult, Request, Response, Stat};
use std::sync::{Arc, Mutex, PoisonError};
use uuid::Uuid;

/// Below the client's namespace, outside of any recipe's layout.
const FOLDER: &str = "/_docent/markers";

/// The markers of a session that no exact write is using.
#[derive(Debug, Default)]
pub(crate) struct Markers(Mutex<Vec<String>>);

/// A marker in use. Dropping it deletes the node: what its last write ended in may be unknown.
struct Marker {
    epoch: Arc<Epoch>,
    path: String,
}

impl Marker {
    /// Its last write is resolved, so that it may be used again.
    fn give_back(mut self) {
        let path = std::mem::take(&mut self.path);
        self.epoch.markers.0.lock().unwrap_or_else(PoisonError::into_inner).push(path);
    }
}

impl Drop for Marker {
    fn drop(&mut self) {
        if !self.path.is_empty() {
            drop(Leaving::new(Arc::clone(&self.epoch), std::mem::take(&mut self.path)));
        }
    }
}

/// How an exact write ended.
pub(super) enum Exact {
    /// A server answered; with the marker's stat when it was applied.
    Answered(Vec<MultiResult>, Option<Stat>),
    /// The reply was lost, and the marker says that the write was applied. Its stat tells when: it was set in the same
    /// transaction.
    Applied(Stat),
}

/// Applies `ops` once: when the reply is lost its marker is read, and what was not applied is sent again. With `bound` it
/// happens in that epoch or not at all.
///
/// # Errors
/// `OutcomeUnknown` when the session ended with the reply outstanding, and its marker with it.
pub(super) async fn commit(
    client: &Client,
    attempts: &mut Attempts<'_>,
    ops: &[MultiOp],
    bound: Option<&Arc<Epoch>>,
) -> Result<Exact, Error> {
    let id = Bytes::copy_from_slice(Uuid::new_v4().as_bytes());
    loop {
        let epoch = match bound {
            Some(epoch) if epoch.ended().is_some() => return Err(attempts.error(ErrorKind::SessionChanged)),
            Some(epoch) => Arc::clone(epoch),
            None => attempts.epoch().await?,
        };
        let Some(marker) = marker(client, attempts, &epoch).await? else { continue };
        let mut all = ops.to_vec();
        all.push(MultiOp::SetData { path: marker.path.clone(), data: Some(id.clone()), version: -1 });
        let mut outcome = epoch.session.submit(Request::Multi(all), Lane::Call).by(attempts.deadline).await;
        if let Outcome::Unknown(Cause::LinkLost) = outcome {
            match tokio::time::timeout_at(attempts.deadline, resolve::read(&epoch, &marker.path)).await {
                Ok(Ok(Some((data, stat)))) if data.as_ref() == Some(&id) => {
                    marker.give_back();
                    return Ok(Exact::Applied(stat));
                }
                Ok(Ok(Some(_))) => outcome = Outcome::NotSent(Cause::LinkLost),
                Ok(Err(cause)) => outcome = Outcome::Unknown(cause),
                // Without its marker nothing is proven.
                Ok(Ok(None)) | Err(_) => {}
            }
        }
        let not_sent = matches!(outcome, Outcome::NotSent(_));
        match attempts.judge(&epoch, outcome).await? {
            Some(Ok(Response::Multi(mut results))) => {
                let set = match results.pop() {
                    // Somebody deleted the marker: nothing was applied, and it takes a new one.
                    Some(MultiResult::Failed(Code::NO_NODE)) => continue,
                    Some(MultiResult::Set(stat)) => Some(stat),
                    _ => None,
                };
                marker.give_back();
                return Ok(Exact::Answered(results, set));
            }
            Some(Ok(other)) => return Err(unexpected("transaction", &other)),
            Some(Err(code)) => return Err(attempts.code(code)),
            None if not_sent => marker.give_back(),
            None => {}
        }
    }
}

/// A marker that no other write is using; `None` when the session ended.
async fn marker(
    client: &Client,
    attempts: &mut Attempts<'_>,
    epoch: &Arc<Epoch>,
) -> Result<Option<Marker>, Error> {
    let free = epoch.markers.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
    if let Some(path) = free {
        return Ok(Some(Marker { epoch: Arc::clone(epoch), path }));
    }
    let folder = client.core().namespace.full("transaction", FOLDER)?;
    // Its drop deletes it also if the create is still on its way.
    let marker = Marker { epoch: Arc::clone(epoch), path: format!("{folder}/{}", Uuid::new_v4()) };
    let mut missing_parents = 0;
    loop {
        let parents =
            if missing_parents > 0 { create_parents(client, epoch, &marker.path) } else { Vec::new() };
        let acl = client.core().acl(&marker.path);
        let create = Create::new(marker.path.clone(), Bytes::new(), acl, CreateMode::Ephemeral, 0);
        let outcome = epoch.session.submit(Request::Create(create), Lane::Call).by(attempts.deadline).await;
        // The name is ours alone: the create can be repeated.
        let outcome = match outcome {
            Outcome::Unknown(cause) => Outcome::NotSent(cause),
            outcome => outcome,
        };
        match attempts.judge(epoch, outcome).await? {
            Some(Ok(_) | Err(Code::NODE_EXISTS)) => return Ok(Some(marker)),
            Some(Err(Code::NO_NODE)) => {
                // On the heap, because it is rare.
                let refused =
                    Box::pin(refused_parent(client.core(), "transaction", &marker.path, parents)).await;
                refused.map_or(Ok(()), Err)?;
                if missing_parents == PARENT_ROUNDS {
                    return Err(attempts.code(Code::NO_NODE));
                }
                missing_parents += 1;
            }
            Some(Err(code)) => return Err(attempts.code(code)),
            None if epoch.ended().is_some() => return Ok(None),
            None => {}
        }
    }
}
