use std::cell::RefCell;
use std::collections::BTreeMap;

/// Remembers for each path the highest fence that it has seen, and refuses lower ones.
#[derive(Debug, Default)]
pub(super) struct FencedResource {
    highest: RefCell<BTreeMap<String, u64>>,
}

impl FencedResource {
    /// Looks at a fence; true when it is not lower than one before.
    pub(super) fn accept(&self, path: &str, fence: u64) -> bool {
        let mut highest = self.highest.borrow_mut();
        let seen = highest.entry(path.to_owned()).or_default();
        let accepted = fence >= *seen;
        *seen = fence.max(*seen);
        accepted
    }
}
