use super::requests::WatchRequest;
use crate::session::WatchKind;
use docent_proto::Request;
use std::collections::HashMap;

/// Reads on their way that ask for a watch, counted by path and by the server's table that the watch will be
/// in, so that the end of a subscriber need not look through all requests that wait.
#[derive(Debug, Default)]
pub(super) struct WatchReads {
    on_data: HashMap<String, usize>,
    on_children: HashMap<String, usize>,
}

impl WatchReads {
    fn table(&mut self, on_children: bool) -> &mut HashMap<String, usize> {
        if on_children { &mut self.on_children } else { &mut self.on_data }
    }

    pub(super) fn add(&mut self, watch: WatchRequest) {
        *self.table(watch.is_on_children()).entry(watch.path).or_default() += 1;
    }

    /// Takes away a read that was answered, or will not be.
    pub(super) fn remove(&mut self, watch: &WatchRequest) {
        let table = self.table(watch.is_on_children());
        if let Some(reads) = table.get_mut(&watch.path) {
            *reads -= 1;
            if *reads == 0 {
                table.remove(&watch.path);
            }
        }
    }

    /// As [`remove`](Self::remove), if `request` is such a read.
    pub(super) fn forget(&mut self, request: &Request) {
        if let Some(watch) = WatchRequest::of(request) {
            self.remove(&watch);
        }
    }

    /// True when one of them will leave a watch on `path` in the table that watches of `kind` are in.
    pub(super) fn contains(&self, path: &str, kind: WatchKind) -> bool {
        match kind {
            WatchKind::Data | WatchKind::Exist => self.on_data.contains_key(path),
            WatchKind::Child => self.on_children.contains_key(path),
        }
    }
}
