use crate::error::Error;
use crate::task::Coalescer;
use bytes::Bytes;
use docent_proto::Stat;
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// Values that handles of one client share, by type and key. The first handle creates a value, and dropping
/// the last handle drops it.
#[derive(Default)]
pub(crate) struct Common(Mutex<HashMap<TypeId, Box<dyn Any + Send>>>);

/// Values of one type with keys of one type.
type Values<K, T> = HashMap<K, Weak<T>>;

impl Common {
    /// Returns the value of this type with this key; `create` creates it if there is none.
    pub(crate) fn get<K, T>(&self, key: K, create: impl FnOnce() -> T) -> Arc<T>
    where
        K: Any + Eq + Hash + Send,
        T: Any + Send + Sync,
    {
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let table = tables.entry(TypeId::of::<Values<K, T>>());
        let table = table.or_insert_with(|| Box::new(Values::<K, T>::new()));
        let values = table.downcast_mut::<Values<K, T>>().expect("each table has the type of its key");
        if let Some(value) = values.get(&key).and_then(Weak::upgrade) {
            return value;
        }
        if values.len() == values.capacity() {
            // Values without a handle are removed before the table would grow.
            values.retain(|_, value| value.strong_count() > 0);
        }
        let value = Arc::new(create());
        values.insert(key, Arc::downgrade(&value));
        value
    }
}

impl fmt::Debug for Common {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Common").finish_non_exhaustive()
    }
}

/// Reads of lines in flight, by full path: concurrent callers share one request.
#[derive(Default)]
pub(crate) struct CoalescedReads {
    /// Names of the children of a line.
    pub(crate) lines: Coalescer<ClientKey, Result<Arc<[String]>, Error>>,
    /// Nodes in lines; `None` for a node that has left.
    pub(crate) nodes: Coalescer<ClientKey, Result<Option<(Bytes, Stat)>, Error>>,
}

impl fmt::Debug for CoalescedReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoalescedReads").finish_non_exhaustive()
    }
}

/// Key of client clones with the same settings that concern the same node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ClientKey {
    pub(crate) operation_timeout: Duration,
    /// Generation that the clone is bound to, if any.
    pub(crate) bound: Option<u64>,
    /// Path of the node, with chroot and namespace.
    pub(crate) full: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_share_a_value_by_type_and_key_until_the_last_is_dropped() {
        let common = Common::default();
        let first = common.get("a".to_owned(), || 1_u32);
        assert!(Arc::ptr_eq(&first, &common.get("a".to_owned(), || 2)));
        assert_eq!((*common.get("b".to_owned(), || 3_u32), *common.get("a".to_owned(), || 4_u64)), (3, 4));
        assert!(!Arc::ptr_eq(&first, &common.get(("a", 1), || 6_u32)));
        drop(first);
        assert_eq!(*common.get("a".to_owned(), || 5_u32), 5);
    }
}
