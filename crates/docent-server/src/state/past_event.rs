use super::acl;
use docent_proto::{Acl, EventKind};
use std::sync::Arc;

/// A reported change of a node, recorded for watches that are set on a past tree.
pub(crate) struct PastEvent {
    pub(crate) kind: EventKind,
    pub(crate) path: Arc<str>,
    /// The node's access control list at that time.
    pub(crate) acl: Arc<[Acl]>,
}

impl PastEvent {
    pub(crate) fn new(kind: EventKind, path: &str, acl: &Arc<[Acl]>) -> Self {
        Self { kind, path: path.into(), acl: Arc::clone(acl) }
    }

    /// Returns the bytes that the change takes up, as the limit of the past counts them.
    pub(crate) fn weight(&self) -> usize {
        PLACE + self.path.len() + acl::weight(&self.acl)
    }
}

/// Bytes of a change besides its path and its access control list.
const PLACE: usize = 128;
