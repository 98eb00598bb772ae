use super::Mutex;
use docent_core::recipe::{Line, RecipeKind, debug_handle};
use docent_core::{Client, Error, Role};
use std::fmt;

static KIND: RecipeKind = RecipeKind::new("mutex", "acquire");

/// Text before the number in a contender's name, as in Curator's `InterProcessMutex`.
const MARKER: &str = "lock-";

/// Settings of a [`Mutex`].
#[derive(Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct MutexBuilder {
    client: Client,
    path: String,
    neighbours: Vec<String>,
}

impl MutexBuilder {
    pub(crate) fn new(client: &Client, path: &str) -> Self {
        Self { client: client.clone(), path: path.to_owned(), neighbours: Vec::new() }
    }

    /// Waits for contenders of another kind, too: nodes whose names end with `marker` and ten digits, as
    /// `__lock__` for kazoo's `Lock`. May be called for several kinds. Default none, but those of Curator's
    /// and go-zookeeper's locks, which have our marker.
    ///
    /// They have to wait for ours as well, or both hold the lock: kazoo's does with
    /// `extra_lock_patterns=["lock-"]`. Everybody at the path needs the same settings.
    pub fn neighbours(mut self, marker: impl Into<String>) -> Self {
        self.neighbours.push(marker.into());
        self
    }

    /// The mutex.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule, or a marker is empty, contains '/', ends with a digit or
    /// counts already.
    pub fn build(self) -> Result<Mutex, Error> {
        Ok(Mutex { line: self.line()? })
    }

    pub(crate) fn line(&self) -> Result<Line, Error> {
        let line = Line::new(&self.client, &self.path, &KIND, MARKER)?;
        let with = |line: Line, marker: &String| line.with_neighbours(marker, Role::Exclusive);
        self.neighbours.iter().try_fold(line, with)
    }

    pub(crate) fn markers(self) -> Vec<String> {
        self.neighbours
    }
}

impl fmt::Debug for MutexBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "MutexBuilder", &self.path, &self.client)
            .field("neighbours", &self.neighbours)
            .finish_non_exhaustive()
    }
}
