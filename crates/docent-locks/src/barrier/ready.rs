use docent_core::Node;

/// State of a double barrier's node `ready`, as the watch of a waiting member reported it.
pub(crate) enum Ready {
    /// The node has not been read yet.
    Unread,
    /// The node does not exist.
    Missing,
    /// The node exists. It belongs to this round, or is left over from an earlier one.
    Present(Node),
    /// The node was created after the member arrived, and was deleted since. Kazoo's members delete it as
    /// soon as they leave.
    Passed,
}

impl Ready {
    /// Records what the watch reports.
    pub(crate) fn update(&mut self, node: Option<Node>) {
        *self = match (&self, node) {
            (_, Some(node)) => Self::Present(node),
            // The watch reports absence again only if the node existed in between.
            (Self::Missing | Self::Passed, None) => Self::Passed,
            (Self::Unread | Self::Present(_), None) => Self::Missing,
        };
    }

    /// Forgets a `ready` that let this member not in, because its node did not exist at the time.
    pub(crate) fn forget_passed(&mut self) {
        if matches!(self, Self::Passed) {
            *self = Self::Missing;
        }
    }
}
