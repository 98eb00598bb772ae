use super::Mutex;
use docent_core::recipe::{Line, RecipeKind, debug_handle};
use docent_core::{Client, Error, Role};
use std::fmt;

static KIND: RecipeKind = RecipeKind::new("mutex", "acquire");

/// Text before the sequence number in a contender's name, as in Curator's `InterProcessMutex`.
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

    /// Also waits for contenders of another kind: nodes whose names end with `marker` and ten digits, such as
    /// `__lock__` for kazoo's `Lock`. May be called for several kinds. By default the mutex waits only for
    /// contenders with Docent's marker, which Curator's and go-zookeeper's locks also use.
    ///
    /// The other contenders have to wait for Docent's nodes as well; otherwise both hold the lock. Kazoo's
    /// locks do with `extra_lock_patterns=["lock-"]`. All contenders at the path need the same settings.
    pub fn neighbours(mut self, marker: impl Into<String>) -> Self {
        self.neighbours.push(marker.into());
        self
    }

    /// Builds the mutex.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule, or if a marker is empty, contains '/', ends with a digit or
    /// is already used.
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
