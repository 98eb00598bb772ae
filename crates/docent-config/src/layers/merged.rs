use super::subscription::{KeyOrigin, LayeredSnapshot};
use crate::value::Checks;
use crate::{Rejection, Revision, Snapshot, TreeSnapshot};
use bytes::Bytes;
use docent_codec::internals::{TextError, Texts};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::str;
use std::sync::Arc;

/// The strongest text of each key.
#[derive(Default)]
pub(super) struct Merged {
    keys: BTreeMap<Arc<str>, Strongest>,
}

struct Strongest {
    path: Arc<str>,
    layer: usize,
    text: Result<Arc<Snapshot<Bytes>>, Rejection>,
}

impl Merged {
    /// Merges layers, each with its path, the weakest first. If two nodes of a layer have the same key, such
    /// as `a/b` and `a.b`, the last one in the order of paths is used.
    pub(super) fn of<'a>(layers: impl Iterator<Item = (&'a str, Arc<TreeSnapshot<Bytes>>)>) -> Self {
        let mut keys = BTreeMap::new();
        for (layer, (root, tree)) in layers.enumerate() {
            let mut add = |below: &str, text| {
                let path = format!("{root}/{below}").into();
                keys.insert(Arc::from(below.replace('/', ".")), Strongest { path, layer, text });
            };
            for (below, text) in tree.iter() {
                add(below, Ok(Arc::clone(text)));
            }
            // A text that can no longer be read is not used.
            for (below, rejection) in tree.refused() {
                add(below, Err(rejection.clone()));
            }
        }
        Self { keys }
    }

    /// Returns whether both consist of the same texts of the same nodes.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let texts = |merged: &Self| -> Vec<_> {
            let texts = merged.keys.values();
            texts.map(|found| (Arc::clone(&found.path), found.revision())).collect()
        };
        texts(self) == texts(other)
    }

    /// Returns the value, if it is valid.
    pub(super) fn read<T: DeserializeOwned + 'static>(
        &self,
        checks: &Checks<T>,
    ) -> Result<LayeredSnapshot<T>, Rejection> {
        let mut revision = None;
        let decode = || {
            self.decode().map_err(|error| {
                // The error names the key as it is written in a node.
                let found = self.keys.get(error.key());
                revision = found.and_then(Strongest::revision);
                let subject = subject(error.key(), found);
                error.into_codec_error(&subject)
            })
        };
        let read = self.check_readable().and_then(|()| checks.read(decode));
        match (read, revision) {
            (Ok(value), _) => Ok(LayeredSnapshot::new(value, self.origins())),
            (Err(rejection), Some(revision)) => Err(rejection.of(revision)),
            (Err(rejection), None) => Err(rejection),
        }
    }

    fn check_readable(&self) -> Result<(), Rejection> {
        let unreadable =
            self.keys.iter().find_map(|(key, found)| Some((key, found, found.text.as_ref().err()?)));
        match unreadable {
            Some((key, found, rejection)) => Err(rejection.clone().about(&subject(key, Some(found)))),
            None => Ok(()),
        }
    }

    fn decode<T: DeserializeOwned>(&self) -> Result<T, TextError> {
        let mut texts = Texts::default();
        for (key, found) in &self.keys {
            let Ok(text) = &found.text else { continue };
            let text = str::from_utf8(text.value()).map_err(|error| {
                TextError::of_key(key, format!("must be UTF-8, and is not at byte {}", error.valid_up_to()))
            })?;
            texts.insert(key, text, found.layer)?;
        }
        texts.decode()
    }

    fn origins(&self) -> BTreeMap<Arc<str>, KeyOrigin> {
        let origins = self.keys.iter().filter_map(|(key, found)| {
            let (path, revision, layer) = (Arc::clone(&found.path), found.revision()?, found.layer);
            Some((Arc::clone(key), KeyOrigin { path, revision, layer }))
        });
        origins.collect()
    }
}

impl Strongest {
    /// Returns the revision of the text, or `None` if it cannot be read.
    fn revision(&self) -> Option<Revision> {
        self.text.as_ref().ok()?.revision()
    }
}

/// Returns the actor of an error's text.
fn subject(key: &str, found: Option<&Strongest>) -> String {
    match found {
        Some(found) => format!("key {key:?} of {}", found.path),
        None if key.is_empty() => "the whole value".to_owned(),
        None => format!("key {key:?}"),
    }
}
