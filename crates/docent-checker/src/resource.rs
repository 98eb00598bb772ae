use crate::event::Use;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Resources that look at fences, by path: each accepts a use if its fence is not lower than the highest it
/// has seen.
///
/// Clones are the same resources.
#[derive(Debug, Clone, Default)]
pub struct FencedResource {
    highest: Arc<Mutex<HashMap<String, u64>>>,
}

impl FencedResource {
    /// Resources that nobody has used yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses the resource at `path` with a fence; tells whether it accepted that.
    pub fn accepts(&self, path: &str, fence: u64) -> bool {
        let mut highest = self.highest.lock().unwrap_or_else(PoisonError::into_inner);
        let highest = highest.entry(path.to_owned()).or_default();
        let accepted = fence >= *highest;
        *highest = fence.max(*highest);
        accepted
    }

    /// As [`accepts`](Self::accepts), as it is recorded.
    pub fn use_with(&self, path: &str, fence: u64) -> Use {
        Use { fence, accepted: self.accepts(path, fence) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_fences_are_refused_for_ever() {
        let resource = FencedResource::new();
        let accepted = [3, 5, 5, 4, 6].map(|fence| resource.clone().accepts("/a", fence));
        assert_eq!(accepted, [true, true, true, false, true]);
        assert_eq!(resource.use_with("/b", 1), Use { fence: 1, accepted: true }, "each path has its own");
    }
}
