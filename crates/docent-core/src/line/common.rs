use super::Line;
use std::any::Any;
use std::sync::Arc;

impl Line {
    /// The value of this type that all handles of this line share which have the same `settings` and the same
    /// timeout and session of their client; `make` makes it if there is none. The drop of the last handle
    /// drops it.
    pub fn common<T: Any + Send + Sync>(&self, settings: &str, make: impl FnOnce() -> T) -> Arc<T> {
        let key = format!("{} {} {settings}", self.marker(), self.client().key(self.full_path()));
        self.client().shared().common.get(key, make)
    }
}
