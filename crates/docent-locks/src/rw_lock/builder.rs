use crate::RwLock;
use docent_core::recipe::{Line, RecipeKind, debug_handle};
use docent_core::{Client, Error, Role};
use std::fmt;

static KIND: RecipeKind = RecipeKind::new("rw_lock", "acquire");

/// Text before the sequence numbers of writers and readers, as in Curator's `InterProcessReadWriteLock`.
const WRITER: &str = "__WRIT__";
const READER: &str = "__READ__";

/// Settings of an [`RwLock`].
#[derive(Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct RwLockBuilder {
    client: Client,
    path: String,
    neighbours: Vec<(String, Role)>,
}

impl RwLockBuilder {
    pub(crate) fn new(client: &Client, path: &str) -> Self {
        Self { client: client.clone(), path: path.to_owned(), neighbours: Vec::new() }
    }

    /// Also counts nodes of another kind as writers: nodes whose names end with `marker` and ten digits, such
    /// as `__lock__` for kazoo's `WriteLock`. May be called for several kinds. Default none.
    ///
    /// The other contenders have to wait for Docent's nodes as well; otherwise both hold the lock. Kazoo's
    /// `WriteLock` does with `extra_lock_patterns=["__WRIT__", "__READ__"]`. All contenders at the path need
    /// the same settings.
    pub fn neighbour_writers(mut self, marker: impl Into<String>) -> Self {
        self.neighbours.push((marker.into(), Role::Exclusive));
        self
    }

    /// Counts nodes of another kind as readers, like [`neighbour_writers`](Self::neighbour_writers) does for
    /// writers: `__rlock__` for kazoo's `ReadLock`, which waits for Docent's writers with
    /// `extra_lock_patterns=["__WRIT__"]`.
    pub fn neighbour_readers(mut self, marker: impl Into<String>) -> Self {
        self.neighbours.push((marker.into(), Role::Shared));
        self
    }

    /// Builds the lock.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule, or if a marker is empty, contains '/', ends with a digit or
    /// is already used.
    pub fn build(self) -> Result<RwLock, Error> {
        let (mut writers, mut readers) = Line::sides(&self.client, &self.path, &KIND, WRITER, READER)?;
        for (marker, role) in self.neighbours {
            writers = writers.with_neighbours(&marker, role)?;
            readers = readers.with_neighbours(marker, role)?;
        }
        Ok(RwLock { writers, readers })
    }
}

impl fmt::Debug for RwLockBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "RwLockBuilder", &self.path, &self.client)
            .field("neighbours", &self.neighbours)
            .finish_non_exhaustive()
    }
}
