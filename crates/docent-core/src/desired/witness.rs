use crate::node::OWN;
use crate::node::namespace::Namespace;
use tokio::sync::OnceCell;

/// Ephemeral node of a session that keeps nodes. It exists as long as the session does, and its name is that
/// session's alone (decision 7).
///
/// A later session of the client replaces a node of this one in a multi that checks the witness. Without that
/// check, where the session ends between the look and the write, a node that another client created at the
/// same path in between would be deleted: it has the version of the node that was looked at.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    /// Full path; `None` inside if the servers refused it.
    path: OnceCell<Option<String>>,
}

impl Witness {
    /// Runs `create`, which returns the path, unless the witness exists or was refused.
    pub(crate) async fn get_or_create<F: Future<Output = Option<String>>>(&self, create: impl FnOnce() -> F) {
        self.path.get_or_init(create).await;
    }

    /// The full path; of a session without a witness one at which there never is a node.
    pub(crate) fn path(&self, namespace: &Namespace) -> String {
        let created = self.path.get().cloned().flatten();
        created.unwrap_or_else(|| format!("{}/{OWN}/none", namespace.prefix()))
    }
}
