use crate::event::Use;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Resources that check fences, by path. Each accepts a use if its fence is not lower than the highest one it
/// has seen.
///
/// Clones share the same resources.
#[derive(Debug, Clone, Default)]
pub struct FencedResource {
    highest: Arc<Mutex<HashMap<String, u64>>>,
}

impl FencedResource {
    /// Creates resources that have not been used yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses the resource at `path` with a fence, and returns whether the resource accepted the fence.
    pub fn accepts(&self, path: &str, fence: u64) -> bool {
        let mut highest = self.highest.lock().unwrap_or_else(PoisonError::into_inner);
        let highest = highest.entry(path.to_owned()).or_default();
        let accepted = fence >= *highest;
        *highest = fence.max(*highest);
        accepted
    }

    /// Like [`accepts`](Self::accepts), and returns the use as it is recorded.
    pub fn use_with(&self, path: &str, fence: u64) -> Use {
        Use { fence, accepted: self.accepts(path, fence) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_fences_are_always_refused() {
        let resource = FencedResource::new();
        let accepted = [3, 5, 5, 4, 6].map(|fence| resource.clone().accepts("/a", fence));
        assert_eq!(accepted, [true, true, true, false, true]);
        assert_eq!(resource.use_with("/b", 1), Use { fence: 1, accepted: true }, "paths are separate");
    }
}
