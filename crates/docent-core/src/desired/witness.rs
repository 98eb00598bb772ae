use crate::node::namespace::{Namespace, OWN_FOLDER};
use tokio::sync::OnceCell;
use uuid::Uuid;

/// Ephemeral node of a session that keeps nodes. It is there as long as the session is, and its name is that
/// session's alone (decision 7).
///
/// A later session of the client replaces a node of this one in a multi that checks the witness. Without that
/// check, where the session ends between the look and the write, a node that somebody else made at the same
/// path in between would be deleted: it has the version of the node that was looked at.
#[derive(Debug)]
pub(crate) struct Witness {
    name: Uuid,
    /// Set once it was made, or is known to be refused.
    pub(crate) made: OnceCell<()>,
}

impl Witness {
    pub(crate) fn new() -> Self {
        Self { name: Uuid::new_v4(), made: OnceCell::new() }
    }

    pub(crate) fn path(&self, namespace: &Namespace) -> String {
        format!("{}/{}", namespace.full("create", OWN_FOLDER).expect("the folder's path is valid"), self.name)
    }
}
