use docent_core::Node;

/// Node `ready` of a double barrier, as the watch of a waiting member told of it.
pub(crate) enum Ready {
    /// It was not read yet.
    Unread,
    /// It is not there.
    Missing,
    /// It is there: of this round, or left over from an earlier one.
    There(Node),
    /// It came after the member did, and went. Kazoo's members delete it as soon as they leave.
    Passed,
}

impl Ready {
    /// Notes what the watch tells next.
    pub(crate) fn told(&mut self, node: Option<Node>) {
        *self = match (&self, node) {
            (_, Some(node)) => Self::There(node),
            // Absence is told again only when it was there in between.
            (Self::Missing | Self::Passed, None) => Self::Passed,
            (Self::Unread | Self::There(_), None) => Self::Missing,
        };
    }

    /// Forgets one that let nobody in: the member was none by then.
    pub(crate) fn forget_passed(&mut self) {
        if matches!(self, Self::Passed) {
            *self = Self::Missing;
        }
    }
}
