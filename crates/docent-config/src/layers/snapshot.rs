use crate::Revision;
use docent_codec::internals::is_same_key;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The value of a [`LayeredConfig`](crate::LayeredConfig) with the origin of each key. It dereferences to the
/// value: `snapshot.server.port`. A snapshot never changes.
#[derive(Clone)]
pub struct LayeredSnapshot<T> {
    value: T,
    origins: BTreeMap<Arc<str>, KeyOrigin>,
}

/// Node whose text a key has.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyOrigin {
    /// Path of the node.
    pub path: Arc<str>,
    /// Revision of the text.
    pub revision: Revision,
    /// Number of the layer in [`LayeredConfig::layers`](crate::LayeredConfig::layers): 0 is the weakest.
    pub layer: usize,
}

impl<T> LayeredSnapshot<T> {
    pub(super) fn new(value: T, origins: BTreeMap<Arc<str>, KeyOrigin>) -> Self {
        Self { value, origins }
    }

    /// Returns the value.
    pub fn value(&self) -> &T {
        &self.value
    }

    /// Returns the origin of a key's text, or `None` if no layer has the key. The key may be written in any
    /// style, such as `server.max-threads` or `server.maxThreads`.
    pub fn origin(&self, key: &str) -> Option<&KeyOrigin> {
        let of_key = self.origins.iter().filter(|(known, _)| is_same_key(known, key));
        let strongest = of_key.max_by_key(|(known, origin)| (origin.layer, ***known == *key));
        strongest.map(|(_, origin)| origin)
    }

    /// Returns all keys with the origins of their texts, in the order of keys. This includes keys that the
    /// type ignores.
    pub fn origins(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, &KeyOrigin)> + DoubleEndedIterator {
        self.origins.iter()
    }
}

impl<T> Deref for LayeredSnapshot<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

// The value may hold secrets, so `Debug` does not print it.
impl<T> fmt::Debug for LayeredSnapshot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayeredSnapshot").field("origins", &self.origins).finish_non_exhaustive()
    }
}
