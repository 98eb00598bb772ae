//! Parents of nodes: created on demand, as the kind set in the builder.

use super::ParentKind;
use crate::error::Error;
use crate::operation::Shared;
use crate::session::abilities::Ability;
use crate::session::{Lane, Outcome, Pending, Reply, SessionContext};
use bytes::Bytes;
use docent_proto::{Code, Create, Request, parent};

/// Number of times that missing parents are created before the error is returned. A server may delete an
/// empty container right after the client saw that it exists.
pub(crate) const PARENT_ROUNDS: u32 = 3;

/// Submits creates of all parents of `full` as `kind`, outermost first. Their replies are not needed: a
/// parent may exist, or be one that this client may not create. The reply to the request submitted after them
/// shows whether the creates worked. The caller keeps the returned requests until then, because dropping them
/// withdraws those not yet sent.
pub(crate) fn create_parents(
    client: &Shared,
    session: &SessionContext,
    full: &str,
    kind: ParentKind,
) -> Vec<Pending> {
    submit(client, session, &parent_paths(full), |_| kind, Lane::Call)
}

/// Like [`create_parents`], but creates only parents below `base`, which is one of them.
pub(crate) fn create_parents_below(
    client: &Shared,
    session: &SessionContext,
    (base, full): (&str, &str),
    kind: ParentKind,
) -> Vec<Pending> {
    let mut parents = parent_paths(full);
    parents.retain(|path| path.len() > base.len());
    submit(client, session, &parents, |_| kind, Lane::Call)
}

/// Like [`create_parents`] with the kind set in the client's builder, but creates the innermost parent as the
/// kind `last`.
pub(crate) fn create_parents_in(
    client: &Shared,
    session: &SessionContext,
    full: &str,
    last: ParentKind,
) -> Vec<Pending> {
    create_parents_by(client, session, full, last, Lane::Call)
}

/// Like [`create_parents_in`], in the given lane.
pub(crate) fn create_parents_by(
    client: &Shared,
    session: &SessionContext,
    full: &str,
    last: ParentKind,
    lane: Lane,
) -> Vec<Pending> {
    let innermost = parent(full);
    let kind = |path: &str| if innermost == Some(path) { last } else { client.config.parents };
    submit(client, session, &parent_paths(full), kind, lane)
}

fn submit(
    client: &Shared,
    session: &SessionContext,
    parents: &[&str],
    kind: impl Fn(&str) -> ParentKind,
    lane: Lane,
) -> Vec<Pending> {
    let creates = parents.iter().map(|path| {
        let (mode, _) = client.parents_as(kind(path)).mode().to_proto();
        let create = Create::new((*path).to_owned(), Bytes::new(), client.acl(path), mode, 0);
        session.session.submit(Request::Create(create), lane)
    });
    creates.collect()
}

/// Returns the error of the refused parent, if `full` still has no parent although `parents` were submitted:
/// all of them, or the innermost ones.
///
/// A parent that exists may be refused as well, because servers check permissions first. A refusal is the
/// reason only if nothing below that parent exists.
pub(crate) async fn refused_parent(
    client: &Shared,
    operation: &'static str,
    full: &str,
    parents: Vec<Pending>,
) -> Option<Error> {
    let paths = parent_paths(full);
    let mut refused = None;
    for (path, parent) in paths[paths.len() - parents.len()..].iter().copied().zip(parents) {
        match parent.await {
            Outcome::Reply(Reply { result: Err(code), .. }) => match code {
                Code::NODE_EXISTS => refused = None,
                // The reason is the refusal of this parent's own parent.
                Code::NO_NODE => {}
                // The client has learned that the servers have no containers, so the next attempt creates
                // none.
                Code::UNIMPLEMENTED if client.abilities.lacks(Ability::Containers) => {}
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

/// Returns the paths of all parents of `full` except the root, outermost first.
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

    /// Returns the error reported if the innermost parents of `/a/b/c/d` were answered with `codes`.
    async fn refused<const N: usize>(codes: [Code; N]) -> Option<ErrorKind> {
        let client = Client::builder("127.0.0.1:1").build().unwrap();
        let answered = codes.map(|code| {
            let result = if code == Code::OK { Ok(Response::Empty) } else { Err(code) };
            Pending::ready(Outcome::Reply(Reply::new(result, 1)))
        });
        let error = refused_parent(client.shared(), "create", "/a/b/c/d", answered.into()).await?;
        assert_eq!(error.path(), Some(["/a", "/a/b", "/a/b/c"][3 - N]), "the outermost one is refused");
        Some(error.kind())
    }

    #[tokio::test]
    async fn only_a_refusal_of_a_parent_that_does_not_exist_is_reported() {
        let (no_auth, exists, no_node) = (Code::NO_AUTH, Code::NODE_EXISTS, Code::NO_NODE);
        assert_eq!(refused([no_auth, no_node, no_node]).await, Some(ErrorKind::NoAuth));
        assert_eq!(refused([no_auth, no_node]).await, Some(ErrorKind::NoAuth));
        assert_eq!(refused([]).await, None);
        assert_eq!(refused([no_auth, exists, exists]).await, None, "a parent below the refused one exists");
        assert_eq!(
            refused([no_auth, exists, no_node]).await,
            None,
            "a parent below the refused one existed and was deleted"
        );
        assert_eq!(refused([no_auth, Code::OK, Code::OK]).await, None, "a parent below was created");
        assert_eq!(refused([exists, no_node, no_node]).await, None, "a parent was deleted in the meantime");
    }
}
