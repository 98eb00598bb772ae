//! Requests that set several watches, split into sizes that servers accept.

use docent_proto::{Request, Watches};
use std::mem;

/// Maximum bytes of paths in one request that sets watches. Servers accept 1 MiB; the Java client also uses
/// this limit.
pub(super) const CHUNK: usize = 128 * 1024;

/// Lists of watches as of one transaction, under construction.
pub(super) struct WatchLists {
    since: i64,
    limit: usize,
    full: Vec<Watches>,
    list: Watches,
    size: usize,
}

impl WatchLists {
    /// Creates empty lists, for requests of up to `request_limit` bytes, as of the transaction `since`.
    pub(super) fn new(since: i64, request_limit: usize) -> Self {
        /// Bytes of the request apart from its paths.
        const FIELDS: usize = 64;
        let limit = CHUNK.min(request_limit).saturating_sub(FIELDS);
        Self { since, limit, full: Vec::new(), list: empty(since), size: 0 }
    }

    /// Adds `path` to the list of one kind.
    pub(super) fn add(&mut self, kind: fn(&mut Watches) -> &mut Vec<String>, path: String) {
        /// Bytes of a path's length field.
        const LENGTH: usize = 4;
        let added = LENGTH + path.len();
        if self.size > 0 && self.size + added > self.limit {
            self.full.push(mem::replace(&mut self.list, empty(self.since)));
            self.size = 0;
        }
        self.size += added;
        kind(&mut self.list).push(path);
    }

    pub(super) fn finish(mut self) -> Vec<Watches> {
        if self.size > 0 {
            self.full.push(self.list);
        }
        self.full
    }
}

fn empty(relative_zxid: i64) -> Watches {
    Watches { relative_zxid, ..Watches::default() }
}

/// Returns requests that set watches on the data of `paths`, as of the transaction `since`, which the session
/// has seen. Their replies hold the watches, in the order of the paths. `request_limit` is the largest
/// request in bytes that the servers accept.
pub(crate) fn watch_requests(
    since: i64,
    paths: impl IntoIterator<Item = String>,
    request_limit: usize,
) -> Vec<Request> {
    let mut lists = WatchLists::new(since, request_limit);
    for path in paths {
        lists.add(|watches| &mut watches.data, path);
    }
    lists.finish().into_iter().map(Request::SetWatches).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_paths_take_several_requests_in_their_order() {
        let paths: Vec<_> = (0..3_000).map(|n| format!("/{n:0>100}")).collect();
        for limit in [1024 * 1024, 64 * 1024] {
            let requests = watch_requests(7, paths.clone(), limit);
            let mut all = Vec::new();
            for request in &requests {
                assert!(request.payload_len() <= CHUNK.min(limit));
                let Request::SetWatches(watches) = request else { panic!("{request:?}") };
                assert_eq!(watches.relative_zxid, 7);
                all.extend(watches.data.iter().cloned());
            }
            assert!(requests.len() > 1);
            assert_eq!(all, paths);
        }
        assert!(watch_requests(7, Vec::new(), 1024).is_empty());
    }
}
