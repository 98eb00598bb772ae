use crate::client::ParentKind;
use crate::node::{OWN, is_own_path};
use crate::operation::Shared;
use docent_proto::{MultiOp, parent};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Folder in which a session keeps its internal nodes: the markers of its exact writes, and its witness. The
/// folder is chosen when the first of these nodes is created, and all of them use it (decision 26).
#[derive(Debug, Default)]
pub(crate) struct OwnFolder {
    /// Name that no other session's folder has.
    name: OnceLock<String>,
    /// Full path, after a node was created in the folder.
    found: Mutex<Option<Arc<str>>>,
    /// Held by the task that searches for a folder; other tasks wait for the result.
    pub(super) search: tokio::sync::Mutex<()>,
}

/// Full paths near which a session's own folder may be created: the paths that are about to be written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Near<'a> {
    /// No path: only the root of the namespace, and the folder of an earlier session of the client.
    None,
    Path(&'a str),
    Ops(&'a [MultiOp]),
}

impl OwnFolder {
    fn lock(&self) -> MutexGuard<'_, Option<Arc<str>>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self) -> Option<Arc<str>> {
        self.lock().clone()
    }

    pub(super) fn set(&self, folder: &str) {
        *self.lock() = Some(folder.into());
    }

    /// Forgets that `folder` can be used, unless another one was found since.
    pub(super) fn forget(&self, folder: &str) {
        self.lock().take_if(|found| **found == *folder);
    }

    /// Forgets the folder if it is below the full path `root`.
    pub(super) fn forget_below(&self, root: &str) {
        self.lock().take_if(|found| is_below(found, root));
    }

    /// The name of the session's own folder; `fresh` generates it.
    pub(super) fn name(&self, fresh: impl FnOnce() -> String) -> &str {
        self.name.get_or_init(fresh)
    }
}

/// Returns true for a node below the full path `root`.
pub(super) fn is_below(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'))
}

impl<'a> Near<'a> {
    fn paths(self) -> impl Iterator<Item = &'a str> {
        let (one, ops) = match self {
            Near::None => (None, &[][..]),
            Near::Path(path) => (Some(path), &[][..]),
            Near::Ops(ops) => (None, ops),
        };
        one.into_iter().chain(ops.iter().map(MultiOp::path))
    }
}

/// Base folders to try, in this order; the root is empty. First the one of an earlier session, then the root
/// of the namespace, and then the ancestors of the written nodes, outermost first: folders farther from the
/// written nodes are less likely to be part of a recipe's layout.
pub(super) fn bases(client: &Shared, near: Near<'_>) -> Vec<String> {
    let earlier = client.own_base.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut bases: Vec<String> = earlier.into_iter().collect();
    let mut add = |base: &str| {
        if !bases.iter().any(|known| known == base) && !is_own_path(base) {
            bases.push(base.to_owned());
        }
    };
    let root = client.namespace.prefix();
    add(root);
    for path in near.paths() {
        let above = std::iter::successors(parent(path), |path| parent(path));
        let mut above: Vec<_> = above.take_while(|base| *base != "/" && is_below(base, root)).collect();
        above.reverse();
        above.into_iter().for_each(&mut add);
    }
    bases
}

/// Places in a base folder, in the order in which they are tried.
pub(super) struct Places {
    /// Folder that clients share, `_docent`.
    pub(super) shared: String,
    /// The session's folder in the shared one. If the servers have no containers, the shared folder itself:
    /// an empty folder for each session would remain forever.
    pub(super) in_shared: String,
    /// The session's folder next to the shared one, for clients that may not create nodes in the shared
    /// folder.
    pub(super) beside: Option<String>,
}

impl Places {
    pub(super) fn of(base: &str, name: &str, kind: ParentKind) -> Self {
        let shared = format!("{base}/{OWN}");
        match kind {
            ParentKind::Container => Self {
                in_shared: format!("{shared}/{name}"),
                beside: Some(format!("{shared}-{name}")),
                shared,
            },
            ParentKind::Persistent => Self { in_shared: shared.clone(), beside: None, shared },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Client;

    #[tokio::test]
    async fn places_are_searched_from_the_root_of_the_namespace_down_to_the_written_path() {
        let client = Client::builder("127.0.0.1:1/chroot").namespace("/shop").build().unwrap();
        let client = client.shared();
        let near = Near::Path("/chroot/shop/svc/queue/items/item-");
        let root = "/chroot/shop";
        let down = [root, "/chroot/shop/svc", "/chroot/shop/svc/queue", "/chroot/shop/svc/queue/items"];
        assert_eq!(bases(client, near), down);
        assert_eq!(bases(client, Near::None), [root]);
        *client.own_base.lock().unwrap() = Some("/chroot/shop/svc".to_owned());
        assert_eq!(bases(client, near), [down[1], down[0], down[2], down[3]]);
        let ops = ["/chroot/shop/a/b", "/chroot/shop/_docent/1/2", "/chroot/shop/c"]
            .map(|path| MultiOp::Check { path: path.to_owned(), version: -1 });
        *client.own_base.lock().unwrap() = None;
        assert_eq!(bases(client, Near::Ops(&ops)), [root, "/chroot/shop/a"]);
    }

    #[tokio::test]
    async fn without_a_namespace_the_root_comes_first() {
        let client = Client::builder("127.0.0.1:1").build().unwrap();
        assert_eq!(bases(client.shared(), Near::Path("/a/b")), ["", "/a"]);
        assert_eq!(bases(client.shared(), Near::Path("/a")), [""]);
        assert_eq!(Places::of("", "1f", ParentKind::Container).in_shared, "/_docent/1f");
        assert_eq!(Places::of("/a", "1f", ParentKind::Container).beside.as_deref(), Some("/a/_docent-1f"));
        assert_eq!(Places::of("/a", "1f", ParentKind::Persistent).in_shared, "/a/_docent");
    }
}
