use std::time::Duration;

/// Limits of one report or walk. What exceeds them is omitted, and the report counts it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum number of nodes to read; 100,000 by default, at least 1.
    pub nodes: usize,
    /// Maximum number of levels below the root of a walk; 16 by default. With 0 only the root is read.
    pub depth: usize,
    /// Maximum number of concurrent requests; 32 by default, at least 1.
    pub in_flight: usize,
    /// Number of bytes of data after which only the stats of nodes are read; 16 MiB by default. Replies in
    /// flight at that time may exceed it.
    pub data_bytes: usize,
    /// Maximum number of dead letters to list for a queue, the oldest first; 100 by default.
    pub dead_letters: usize,
    /// Maximum number of one-shot watches of a [live report](crate::Inspector::watch) or
    /// [survey](crate::Inspector::watch_below); 1,000 by default, at least 1. They serve servers without
    /// persistent watches, and nodes outside of the followed root.
    pub watches: usize,
    /// Poll interval for nodes that are not watched because of that limit; 5 s by default, at least 1 s.
    pub look_every: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            nodes: 100_000,
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
