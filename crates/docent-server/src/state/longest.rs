//! Upper bounds on the size of answers before they are computed.

use super::acl;
use super::past::Staleness;
use super::reader::{RESULT, name_weight, weight};
use super::state::State;
use super::tree::Tree;
use docent_proto::{Acl, MultiOp, Request};

/// Bytes of an answer besides names, data, lists and the results of a multi: headers, a stat, and the lengths
/// of lists.
const BASE: usize = 112;

/// Number of digits at the end of a sequential node's path.
const DIGITS: usize = 10;

impl State {
    /// Returns the maximum size of the answer to a request, before the answer is computed. Names count as in
    /// [`Limits::reply_bytes`](crate::Limits::reply_bytes).
    pub(crate) fn longest_answer(
        &self,
        staleness: Staleness,
        session: i64,
        request: &Request,
        now: i64,
    ) -> usize {
        let (sessions, past) = (&self.database.sessions, &self.database.past);
        let past = past.oldest(staleness, now).and_then(|version| past.tree(version));
        let tree = past.unwrap_or(&self.database.tree);
        let identities =
            || sessions.identities(session).iter().map(|one| acl::named(&one.scheme, &one.id)).sum();
        let ephemerals = || {
            let session = sessions.get(session).into_iter();
            session.flat_map(|session| &session.ephemerals).map(|path| name_weight(path)).sum()
        };
        BASE + match request {
            Request::GetData { path, .. } => shown(tree, path, false),
            Request::GetChildren { path, .. } | Request::GetChildren2 { path, .. } => shown(tree, path, true),
            Request::GetAcl { path } => tree.get(path).map_or(0, |node| list(&node.acl)),
            Request::GetEphemerals { .. } => ephemerals(),
            Request::WhoAmI => identities(),
            Request::Sync { path } => path.len(),
            Request::Create(create) => create.path.len() + DIGITS,
            Request::Multi(ops) | Request::MultiRead(ops) => ops.iter().map(|op| result(tree, op)).sum(),
            _ => 0,
        }
    }
}

/// Returns the bytes of an access control list.
fn list(list: &[Acl]) -> usize {
    list.iter().map(|entry| acl::named(&entry.scheme, &entry.id)).sum()
}

/// Returns the bytes of the result of an operation in a multi.
fn result(tree: &Tree, op: &MultiOp) -> usize {
    match op {
        MultiOp::GetData { path } => shown(tree, path, false),
        MultiOp::GetChildren { path } => shown(tree, path, true),
        MultiOp::Create(create) => RESULT + create.path.len() + DIGITS,
        _ => RESULT,
    }
}

/// Returns the bytes of a node's data, or of the names of its children.
fn shown(tree: &Tree, path: &str, is_listing: bool) -> usize {
    tree.get(path).map_or(RESULT, |node| weight(node, is_listing))
}
