use super::{Client, PARENT_ROUNDS, create_parents, ephemeral, refused_parent};
use crate::cleanup::{ExactWrite, Near, WriteOutcome};
use crate::error::{Error, ErrorKind};
use crate::guard::SessionGeneration;
use crate::node::{CreateMode, Created, namespace};
use crate::operation::{Idempotency, unexpected};
use crate::session::abilities::Ability;
use crate::session::{Cause, Lane, lookup};
use bytes::Bytes;
use docent_proto::{Code, Create, MultiOp, Request, Response, Stat};
use tokio::time::{Instant, timeout_at};

/// Creates a node. On `NoNode`, creates its parents and then the node again, in one round trip.
pub(crate) async fn create(
    client: &Client,
    path: &str,
    data: Bytes,
    mode: CreateMode,
) -> Result<Created, Error> {
    if let Some(ttl) = mode.bad_ttl() {
        let detail = format!("time to live {ttl:?} must be from 1 ms to 2^40 ms");
        return Err(Error::invalid_input("create", detail).at(path));
    }
    let (wire_mode, ttl) = mode.to_proto();
    let namespace = &client.shared().namespace;
    let is_sequential = wire_mode.is_sequential();
    let full = || if is_sequential { namespace.join_sequential(path) } else { namespace.join(path) };
    if is_sequential {
        namespace::check_sequential("create", path)?;
    } else {
        namespace::check("create", path)?;
    }
    let create = || {
        let full = full();
        let acl = client.shared().acl(&full);
        Create::new(full, data.clone(), acl, wire_mode, ttl)
    };
    if wire_mode.is_ephemeral() {
        return Box::pin(ephemeral::create(client, path, &data, &create)).await;
    }
    let request = || Request::Create(create());
    let mut attempts = client.attempts("create", path, Idempotency::Once);
    let mut missing_parents = 0;
    loop {
        let generation = attempts.generation().await?;
        let parents = if missing_parents > 0 {
            create_parents(client.shared(), &generation, &full(), client.parents())
        } else {
            Vec::new()
        };
        match attempts.send(&generation, &request).await? {
            Some(Ok(Response::Created { path, stat: Some(mut stat) })) => {
                if stat.ctime == 0 {
                    // On the heap, because only old servers report no times.
                    stat = Box::pin(with_times(&generation, &path, stat, attempts.deadline)).await;
                }
                return Ok(Created { path: namespace.relative(&path), stat: stat.into() });
            }
            Some(Err(Code::UNIMPLEMENTED)) => {
                return Err(unsupported(attempts.code(Code::UNIMPLEMENTED), mode));
            }
            Some(Ok(other)) => return Err(unexpected("create", &other)),
            Some(Err(Code::NO_NODE)) => {}
            Some(Err(code)) => return Err(attempts.code(code)),
            None => continue,
        }
        let full = full();
        // On the heap, because this case is rare.
        let refused = Box::pin(refused_parent(client.shared(), "create", &full, parents)).await;
        refused.map_or(Ok(()), Err)?;
        if missing_parents == PARENT_ROUNDS {
            return Err(attempts.code(Code::NO_NODE));
        }
        missing_parents += 1;
    }
}

/// Adds the times of the created node, if the servers have no `create2` and so did not report them. The node
/// was created in any case: if another client has deleted or replaced it since, or if the session has lost
/// its link, the times remain those of the epoch.
async fn with_times(generation: &SessionGeneration, path: &str, stat: Stat, deadline: Instant) -> Stat {
    let request = Request::Exists { path: path.to_owned(), watch: false };
    let read = generation.session.submit(request, Lane::Call).by(deadline).await;
    match read.answer().map(|reply| reply.result) {
        // The transaction shows that this is the created node, and not another one at its path.
        Ok(Ok(Response::Stat(found))) if found.czxid == stat.czxid => {
            Stat { ctime: found.ctime, mtime: found.ctime, ..stat }
        }
        _ => stat,
    }
}

/// Returns the error, with what the servers lack.
fn unsupported(error: Error, mode: CreateMode) -> Error {
    let ability = match mode {
        CreateMode::Container => Ability::Containers,
        CreateMode::PersistentTtl(_) | CreateMode::PersistentSequentialTtl(_) => Ability::Ttl,
        _ => return error,
    };
    error.because(format!("the servers do not support {}", ability.requirement()))
}

/// Creates an empty node at `path` with `mode`, and missing parents before it, unless the node exists. The
/// node exists when this returns.
///
/// If the reply is lost, the create is sent again. A create that is applied late is harmless, but until then
/// the node may not exist (decision 11).
///
/// # Errors
/// `NoAuth`, `NoChildrenForEphemerals`, `InvalidInput`, `Closed`; `Timeout` if no reply arrived within the
/// operation timeout.
///
/// # Cancel safety
/// This function is cancel safe. The node may have been created, and calling the function again is harmless.
pub async fn ensure_node(client: &Client, path: &str, mode: CreateMode) -> Result<(), Error> {
    let begun = Instant::now();
    loop {
        match client.create(path, Bytes::new(), mode).await {
            Ok(_) => return Ok(()),
            Err(error) => match error.kind() {
                ErrorKind::NodeExists => return Ok(()),
                ErrorKind::OutcomeUnknown if begun.elapsed() < client.operation_timeout() => {}
                ErrorKind::OutcomeUnknown => return Err(Error::new(ErrorKind::Timeout, "create").at(path)),
                _ => return Err(error),
            },
        }
    }
}

/// Deletes a node if it exists, by exact writes: a plain delete that is applied late could delete the next
/// node at the path (decision 11). Each attempt first checks whether the node is still the same.
pub(crate) async fn ensure_absent(client: &Client, path: &str) -> Result<(), Error> {
    let full = client.shared().namespace.full("delete", path)?;
    let mut attempts = client.attempts("delete", path, Idempotency::Idempotent);
    let mut known: Option<i64> = None;
    // True once the outcome of an attempt could not be determined.
    let mut unsettled = false;
    loop {
        let maybe = |error: Error| if unsettled { error.maybe_applied(true) } else { error };
        let generation = attempts.generation().await.map_err(maybe)?;
        // Get the marker first, because that may have to wait, and the check must use the same link as the
        // delete.
        let Some(marker) = attempts.marker(&generation, Near::Path(&full)).await.map_err(maybe)? else {
            continue;
        };
        let losses = generation.losses();
        let version = match timeout_at(attempts.deadline, lookup::stat(&generation, &full)).await {
            Ok(Ok(Some(stat))) if known.is_none_or(|czxid| czxid == stat.czxid) => {
                known = Some(stat.czxid);
                stat.version
            }
            other => {
                marker.unused();
                match other {
                    // The node does not exist, or another node has replaced it.
                    Ok(Ok(_)) => return Ok(()),
                    Ok(Err(cause)) => attempts.retry(&generation, false, cause).await.map_err(maybe)?,
                    Err(_) => return Err(maybe(attempts.timeout())),
                }
                continue;
            }
        };
        let delete = MultiOp::Delete { path: full.clone(), version };
        let mut write = ExactWrite::submit_on((losses, None), marker, delete, Lane::Call);
        let cause = match write.outcome(attempts.deadline).await {
            WriteOutcome::Applied(..) | WriteOutcome::Failed(_, Code::NO_NODE) => return Ok(()),
            // The node's data was set in the meantime, or another node has replaced it.
            WriteOutcome::Failed(_, Code::BAD_VERSION) | WriteOutcome::NoMarker => continue,
            WriteOutcome::Refused(Code::THROTTLED) => Cause::QueueFull,
            WriteOutcome::Failed(_, code) | WriteOutcome::Refused(code) => {
                return Err(maybe(attempts.code(code)));
            }
            WriteOutcome::NotApplied(cause) => cause,
            WriteOutcome::Unknown(cause) => {
                unsettled = true;
                cause
            }
        };
        drop(write);
        let retried = attempts.retry(&generation, false, cause).await;
        retried.map_err(|error| if unsettled { error.maybe_applied(true) } else { error })?;
    }
}
