//! Parents of nodes: made on demand, as the kind that the client was built with.

use super::ParentKind;
use crate::error::Error;
use crate::operation::Shared;
use crate::session::{Lane, Outcome, Pending, Reply, SessionContext};
use bytes::Bytes;
use docent_proto::{Code, Create, Request, parent};

/// Number of times that missing parents are made before the error is passed on. A server may delete an empty
/// container right after we saw that it exists.
pub(crate) const PARENT_ROUNDS: u32 = 3;

/// Submits creates of all parents of `full`, outermost first. Their answers are not needed: a parent may
/// exist, or be one that we may not create in; the answer to the request submitted after them shows whether
/// it worked. The caller keeps the returned requests until then: dropping them takes back those not yet sent.
pub(crate) fn create_parents(client: &Shared, session: &SessionContext, full: &str) -> Vec<Pending> {
    create_parents_in(client, session, full, client.config.parents)
}

/// As [`create_parents`]; the innermost is made as the kind `last`.
pub(crate) fn create_parents_in(
    client: &Shared,
    session: &SessionContext,
    full: &str,
    last: ParentKind,
) -> Vec<Pending> {
    create_parents_by(client, session, full, last, Lane::Call)
}

/// As [`create_parents_in`], in that lane.
pub(crate) fn create_parents_by(
    client: &Shared,
    session: &SessionContext,
    full: &str,
    last: ParentKind,
    lane: Lane,
) -> Vec<Pending> {
    let innermost = parent(full);
    let creates = parent_paths(full).into_iter().map(|path| {
        let kind = if innermost == Some(path) { last } else { client.config.parents };
        let (mode, _) = kind.mode().to_proto();
        let create = Create::new(path.to_owned(), Bytes::new(), client.acl(path), mode, 0);
        session.session.submit(Request::Create(create), lane)
    });
    creates.collect()
}

/// Error of the refused parent, where `full` still has no parent although `parents` were submitted.
///
/// A parent that exists may be refused as well, because permissions are looked at first: only a refusal that
/// nothing exists below of is the reason.
pub(crate) async fn refused_parent(
    client: &Shared,
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
    let error = Error::from_code(code, operation).at(&client.namespace.relative(path));
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
    use crate::{Client, ErrorKind};
    use docent_proto::Response;

    /// Error reported when the parents `/a`, `/a/b` and `/a/b/c` were answered with `codes`.
    async fn refused(codes: [Code; 3]) -> Option<ErrorKind> {
        let client = Client::builder("127.0.0.1:1").build().unwrap();
        let answered = codes.map(|code| {
            let result = if code == Code::OK { Ok(Response::Empty) } else { Err(code) };
            Pending::ready(Outcome::Reply(Reply { result, zxid: 1, watch: None, watches: Vec::new() }))
        });
        let error = refused_parent(client.shared(), "create", "/a/b/c/d", answered.into()).await;
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
