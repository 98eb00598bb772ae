use super::acl;
use docent_proto::{Acl, EventKind};
use std::sync::Arc;

/// Change of a node as watches were told of it, kept for those that are set in the past.
pub(crate) struct News {
    pub(crate) kind: EventKind,
    pub(crate) path: Arc<str>,
    /// The node's access control list at that time.
    pub(crate) acl: Arc<[Acl]>,
}

impl News {
    pub(crate) fn new(kind: EventKind, path: &str, acl: &Arc<[Acl]>) -> Self {
        Self { kind, path: path.into(), acl: Arc::clone(acl) }
    }

    /// Bytes that it takes up, as the limit of the past counts them.
    pub(crate) fn weight(&self) -> usize {
        PLACE + self.path.len() + acl::weight(&self.acl)
    }
}

/// Bytes of a change besides its path and its list.
const PLACE: usize = 128;
