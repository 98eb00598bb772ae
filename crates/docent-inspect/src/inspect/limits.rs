use std::time::Duration;

/// Limits of one report or walk. What is beyond them is left out, and the report says so.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Limits {
    /// Most nodes that are read; 10,000 by default, and 1 at least.
    pub nodes: usize,
    /// Most levels below the root of a walk; 16 by default. With 0 the root alone is looked at.
    pub depth: usize,
    /// Most requests under way at the same time; 32 by default, and 1 at least.
    pub in_flight: usize,
    /// Bytes of data after which only the stats of nodes are read; 16 MiB by default. Replies that are under
    /// way then may add to it.
    pub data_bytes: usize,
    /// Most dead letters that are listed for a queue, the oldest first; 100 by default.
    pub dead_letters: usize,
    /// Most watches of a [live report](crate::Inspector::watch) or
    /// [survey](crate::Inspector::watch_below); 1,000 by default, and 1 at least.
    pub watches: usize,
    /// Time from one look to the next at nodes that are not watched because of that limit; 5 s by default,
    /// and 1 s at least.
    pub look_every: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            nodes: 10_000,
            depth: 16,
            in_flight: 32,
            data_bytes: 16 * 1024 * 1024,
            dead_letters: 100,
            watches: 1_000,
            look_every: Duration::from_secs(5),
        }
    }
}

impl Limits {
    /// Sets [`nodes`](Self::nodes).
    #[must_use]
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// Sets [`depth`](Self::depth).
    #[must_use]
    pub fn depth(mut self, depth: usize) -> Self {
        self.depth = depth;
        self
    }

    /// Sets [`in_flight`](Self::in_flight).
    #[must_use]
    pub fn in_flight(mut self, requests: usize) -> Self {
        self.in_flight = requests;
        self
    }

    /// Sets [`data_bytes`](Self::data_bytes).
    #[must_use]
    pub fn data_bytes(mut self, bytes: usize) -> Self {
        self.data_bytes = bytes;
        self
    }

    /// Sets [`dead_letters`](Self::dead_letters).
    #[must_use]
    pub fn dead_letters(mut self, letters: usize) -> Self {
        self.dead_letters = letters;
        self
    }

    /// Sets [`look_every`](Self::look_every).
    #[must_use]
    pub fn look_every(mut self, time: Duration) -> Self {
        self.look_every = time;
        self
    }

    /// Sets [`watches`](Self::watches).
    #[must_use]
    pub fn watches(mut self, watches: usize) -> Self {
        self.watches = watches;
        self
    }
}
