use super::Line;
use std::any::Any;
use std::hash::Hash;
use std::sync::Arc;

impl Line {
    /// The value of this type that all handles of this line share which have the same `settings` and the same
    /// timeout and session of their client; `make` makes it if there is none. The drop of the last handle
    /// drops it.
    pub fn common<K, T>(&self, settings: K, make: impl FnOnce() -> T) -> Arc<T>
    where
        K: Any + Eq + Hash + Send,
        T: Any + Send + Sync,
    {
        let key = (self.client().key(self.full_path().to_owned()), self.marker(), settings);
        self.client().shared().common.get(key, make)
    }
}
