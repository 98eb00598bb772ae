use docent_proto::{MultiOp, Request};

/// Kind of request that triggers a fault.
///
/// A transaction counts as each kind of operation that it contains. Recipes send some writes in a
/// transaction, together with a marker that later shows whether the write was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Creation of a node in any mode.
    Create,
    /// Change of a node's data.
    Set,
    /// Deletion of a node.
    Delete,
    /// Read of a node's data, status or children.
    Read,
    /// Any request about a node.
    Any,
}

impl Operation {
    /// Returns whether `request` is of this kind and concerns a node at `path` or below it. Paths are the
    /// server's paths, which include the client's namespace.
    pub fn is_meant(self, path: &str, request: &Request) -> bool {
        let top = path.trim_end_matches('/');
        let meant = |kind, path: &str| (self == Self::Any || self == kind) && is_below(top, path);
        match request {
            Request::Multi(ops) | Request::MultiRead(ops) => {
                ops.iter().any(|op| part(op).is_some_and(|kind| meant(kind, op.path())))
            }
            other => other.path().is_some_and(|path| meant(kind(other), path)),
        }
    }
}

/// Returns the kind of a request that is not a transaction.
fn kind(request: &Request) -> Operation {
    match request {
        Request::Create(_) => Operation::Create,
        Request::SetData { .. } => Operation::Set,
        Request::Delete { .. } => Operation::Delete,
        Request::Exists { .. }
        | Request::GetData { .. }
        | Request::GetChildren { .. }
        | Request::GetChildren2 { .. } => Operation::Read,
        _ => Operation::Any,
    }
}

/// Returns the kind of an operation in a transaction; `None` for a check, which only accompanies other
/// operations.
fn part(op: &MultiOp) -> Option<Operation> {
    match op {
        MultiOp::Create(_) => Some(Operation::Create),
        MultiOp::SetData { .. } => Some(Operation::Set),
        MultiOp::Delete { .. } => Some(Operation::Delete),
        MultiOp::GetData { .. } | MultiOp::GetChildren { .. } => Some(Operation::Read),
        _ => None,
    }
}

fn is_below(top: &str, path: &str) -> bool {
    path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use docent_proto::{Acl, Create, CreateMode};

    fn create(path: &str) -> Create {
        Create::new(path.into(), Bytes::new(), Acl::open(), CreateMode::Persistent, 0)
    }

    #[test]
    fn a_request_is_meant_by_its_kind_and_path() {
        let request = Request::Create(create("/locks/a"));
        for path in ["/locks", "/locks/", "/locks/a", "/", ""] {
            assert!(Operation::Create.is_meant(path, &request), "{path}");
        }
        for path in ["/lock", "/locks/a/b", "/locks/ab"] {
            assert!(!Operation::Any.is_meant(path, &request), "{path}");
        }
        assert!(Operation::Any.is_meant("/locks", &request));
        assert!(!Operation::Delete.is_meant("/locks", &request));
    }

    #[test]
    fn a_transaction_counts_as_each_of_its_parts() {
        let ops = vec![
            MultiOp::Create(create("/queue/item")),
            MultiOp::Delete { path: "/old".into(), version: -1 },
        ];
        let request = Request::Multi(ops);
        assert!(Operation::Create.is_meant("/queue", &request));
        assert!(Operation::Delete.is_meant("/old", &request));
        assert!(
            !Operation::Set.is_meant("/queue", &request) && !Operation::Delete.is_meant("/queue", &request)
        );
    }

    #[test]
    fn a_ping_is_about_no_node() {
        assert!(!Operation::Any.is_meant("", &Request::Ping));
    }
}
