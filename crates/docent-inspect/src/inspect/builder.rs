use super::clock::Clock;
use super::{Inspector, Limits};
use docent_core::Client;

/// Builder of an [`Inspector`].
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct InspectorBuilder {
    client: Client,
    limits: Limits,
    own_node: bool,
}

impl InspectorBuilder {
    pub(super) fn new(client: &Client) -> Self {
        Self { client: client.clone(), limits: Limits::default(), own_node: true }
    }

    /// Sets the limits of each report and walk.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Disables writes. The servers' time is then the newest time in any node that is read, so ages are lower
    /// bounds. By default the inspector sets the session's own ephemeral node, in a folder named `_docent`,
    /// at most once a minute.
    pub fn read_only(mut self) -> Self {
        self.own_node = false;
        self
    }

    /// Creates the inspector. Nothing is sent.
    pub fn build(self) -> Inspector {
        Inspector::with(self.client, self.limits, Clock::new(self.own_node))
    }
}
