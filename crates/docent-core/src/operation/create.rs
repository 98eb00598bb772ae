use super::attempts::{Attempts, Outcomes, unexpected};
use super::ephemeral;
use crate::client::Client;
use crate::client::config::ParentKind;
use crate::client::core::Core;
use crate::client::generation::SessionGeneration;
use crate::error::Error;
use crate::node::{CreateMode, Created, namespace};
use crate::session::{Lane, Outcome, Pending, Reply};
use bytes::Bytes;
use docent_proto::{Code, Create, Request, Response, parent};

/// Number of times that missing parents are made before the error is passed on. A server may delete an empty
/// container right after we saw that it exists.
pub(crate) const PARENT_ROUNDS: u32 = 3;

/// Creates a node; on `NoNode` its parents and then the node again, in one trip.
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
    let namespace = &client.core().namespace;
    let is_sequential = wire_mode.is_sequential();
    let full = || if is_sequential { namespace.join_sequential(path) } else { namespace.join(path) };
    if is_sequential {
        namespace::check_sequential("create", path)?;
    } else {
        namespace::check("create", path)?;
    }
    let create = || {
        let full = full();
        let acl = client.core().acl(&full);
        Create::new(full, data.clone(), acl, wire_mode, ttl)
    };
    if wire_mode.is_ephemeral() {
        return Box::pin(ephemeral::create(client, path, &data, &create)).await;
    }
    let request = || Request::Create(create());
    let mut attempts = Attempts::new(client, "create", path, Outcomes::Once);
    let mut missing_parents = 0;
    loop {
        let generation = attempts.generation().await?;
        let parents =
            if missing_parents > 0 { create_parents(client, &generation, &full()) } else { Vec::new() };
        match attempts.send(&generation, &request).await? {
            Some(Ok(Response::Created { path, stat: Some(stat) })) => {
                return Ok(Created { path: namespace.relative(path), stat: stat.into() });
            }
            Some(Ok(other)) => return Err(unexpected("create", &other)),
            Some(Err(Code::NO_NODE)) => {}
            Some(Err(code)) => return Err(attempts.code(code)),
            None => continue,
        }
        let full = full();
        // On the heap, because it is rare.
        let refused = Box::pin(refused_parent(client.core(), "create", &full, parents)).await;
        refused.map_or(Ok(()), Err)?;
        if missing_parents == PARENT_ROUNDS {
            return Err(attempts.code(Code::NO_NODE));
        }
        missing_parents += 1;
    }
}

/// Submits creates of all parents of `full`, outermost first. Their answers are not needed: a parent may
/// exist, or be one that we may not create in; the answer to the request submitted after them shows whether
/// it worked. The caller keeps the returned requests until then: dropping them takes back those not yet sent.
pub(crate) fn create_parents(client: &Client, generation: &SessionGeneration, full: &str) -> Vec<Pending> {
    create_parents_in(client.core(), generation, full, client.core().config.parents)
}

/// As [`create_parents`]; the innermost is made as the kind `last`.
pub(crate) fn create_parents_in(
    core: &Core,
    generation: &SessionGeneration,
    full: &str,
    last: ParentKind,
) -> Vec<Pending> {
    create_parents_by(core, generation, full, last, Lane::Call)
}

/// As [`create_parents_in`], in that lane.
pub(crate) fn create_parents_by(
    core: &Core,
    generation: &SessionGeneration,
    full: &str,
    last: ParentKind,
    lane: Lane,
) -> Vec<Pending> {
    let innermost = parent(full);
    let creates = parent_paths(full).into_iter().map(|path| {
        let kind = if innermost == Some(path) { last } else { core.config.parents };
        let (mode, _) = kind.mode().to_proto();
        let create = Create::new(path.to_owned(), Bytes::new(), core.acl(path), mode, 0);
        generation.session.submit(Request::Create(create), lane)
    });
    creates.collect()
}

/// Error of the refused parent, where `full` still has no parent although `parents` were submitted.
///
/// A parent that exists may be refused as well, because permissions are looked at first: only a refusal that
/// nothing exists below of is the reason.
pub(crate) async fn refused_parent(
    core: &Core,
    operation: &'static str,
    full: &str,
    parents: Vec<Pending>,
) -> Option<Error> {
    let mut refused = None;
    for (path, parent) in parent_paths(full).into_iter().zip(parents) {
        match parent.await {
            Outcome::Reply(Reply { result: Err(code), .. }) => match code {
                Code::NODE_EXISTS => refused = None,
                // The refusal of the parent's own parent is the reason.
                Code::NO_NODE => {}
                code => refused = refused.or(Some((path, code))),
            },
            Outcome::Reply(_) => refused = None,
            Outcome::NotSent(_) | Outcome::Unknown(_) => return None,
        }
    }
    let (path, code) = refused?;
    let error = Error::from_code(code, operation).at(&core.namespace.relative(path));
    Some(if code == Code::NO_AUTH { error.because("needs CREATE on the parent") } else { error })
}

/// The paths of all parents of `full` besides the root, outermost first.
fn parent_paths(full: &str) -> Vec<&str> {
    let mut paths: Vec<_> = std::iter::successors(parent(full), |path| parent(path)).collect();
    paths.pop();
    paths.reverse();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    /// Error reported when the parents `/a`, `/a/b` and `/a/b/c` were answered with `codes`.
    async fn refused(codes: [Code; 3]) -> Option<ErrorKind> {
        let client = Client::builder("127.0.0.1:1").build().unwrap();
        let answered = codes.map(|code| {
            let result = if code == Code::OK { Ok(Response::Empty) } else { Err(code) };
            Pending::ready(Outcome::Reply(Reply { result, zxid: 1, watch: None }))
        });
        let error = refused_parent(client.core(), "create", "/a/b/c/d", answered.into()).await;
        error.map(|error| error.kind())
    }

    #[tokio::test]
    async fn only_a_refusal_that_nothing_exists_below_of_is_reported() {
        let (no_auth, exists, no_node) = (Code::NO_AUTH, Code::NODE_EXISTS, Code::NO_NODE);
        assert_eq!(refused([exists, no_auth, no_node]).await, Some(ErrorKind::NoAuth));
        assert_eq!(refused([no_auth, no_node, no_node]).await, Some(ErrorKind::NoAuth));
        assert_eq!(refused([no_auth, exists, exists]).await, None, "a parent below of it exists");
        assert_eq!(
            refused([no_auth, exists, no_node]).await,
            None,
            "a parent below of it existed and is gone"
        );
        assert_eq!(refused([no_auth, Code::OK, Code::OK]).await, None, "a parent below of it was made");
        assert_eq!(refused([exists, no_node, no_node]).await, None, "a parent was deleted meanwhile");
    }
}
