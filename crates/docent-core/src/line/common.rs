use super::Line;
use std::any::Any;
use std::hash::Hash;
use std::sync::Arc;

impl Line {
    /// Returns the value of this type that handles of this line share, creating it with `create` if there is
    /// none.
    ///
    /// Handles share a value if their `settings` are equal and their clients have the same timeout and
    /// session. The value is dropped together with the last handle.
    pub fn common<K, T>(&self, settings: K, create: impl FnOnce() -> T) -> Arc<T>
    where
        K: Any + Eq + Hash + Send,
        T: Any + Send + Sync,
    {
        let key = (self.client().key(self.full_path().to_owned()), self.marker(), settings);
        self.client().shared().common.get(key, create)
    }
}
