use super::requests::WatchRequest;
use crate::session::WatchKind;
use docent_proto::Request;
use std::collections::HashMap;
use std::sync::Arc;

/// Number of paths for which an empty table keeps room.
const FEW: usize = 64;

/// Requests in flight that set watches, counted by path and by the server's table that will hold the watch.
/// This way, removing a subscriber need not search through all waiting requests.
#[derive(Debug, Default)]
pub(super) struct WatchReads {
    on_data: HashMap<Arc<str>, usize>,
    on_children: HashMap<Arc<str>, usize>,
}

impl WatchReads {
    fn table(&mut self, on_children: bool) -> &mut HashMap<Arc<str>, usize> {
        if on_children { &mut self.on_children } else { &mut self.on_data }
    }

    pub(super) fn add(&mut self, watch: &WatchRequest) {
        let table = self.table(watch.is_on_children());
        for path in watch.paths() {
            match table.get_mut(path) {
                Some(requests) => *requests += 1,
                None => drop(table.insert(Arc::clone(path), 1)),
            }
        }
    }

    /// Removes a request that was answered, or will not be.
    pub(super) fn remove(&mut self, watch: &WatchRequest) {
        let table = self.table(watch.is_on_children());
        for path in watch.paths() {
            let Some(requests) = table.get_mut(path) else { continue };
            *requests -= 1;
            if *requests == 0 {
                table.remove(path);
            }
        }
        // A large request of watches leaves the table big and empty.
        if table.is_empty() {
            table.shrink_to(FEW);
        }
    }

    /// Like [`remove`](Self::remove), if `request` sets watches.
    pub(super) fn forget(&mut self, request: &Request) {
        if let Some(watch) = WatchRequest::of(request) {
            self.remove(&watch);
        }
    }

    /// Returns true if one of the requests will set a watch on `path` in the table for watches of `kind`.
    pub(super) fn contains(&self, path: &str, kind: WatchKind) -> bool {
        match kind {
            WatchKind::Data | WatchKind::Exist => self.on_data.contains_key(path),
            WatchKind::Child => self.on_children.contains_key(path),
            WatchKind::Persistent => false,
        }
    }
}
