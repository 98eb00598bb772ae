use std::time::Duration;

/// Deed of an instance of a service, or of a member of a group, which is listed below a folder.
///
/// It says a number about itself that nobody else uses in a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Announcing {
    /// From now on it wants to be there, with this number.
    Wants {
        /// Its node, as the server knows it.
        path: String,
        /// The number that it says about itself.
        number: u64,
    },
    /// The call returned that brings this number to the servers.
    Told(u64),
    /// It wants to be gone, or gave up.
    Leaving,
    /// The call that takes it away returned success.
    Left,
}

/// Deed of a viewer of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Viewing {
    /// It looks from now on.
    Opened {
        /// The folder, as the server knows it.
        folder: String,
        /// Time for which a member that is gone is still shown.
        grace: Duration,
    },
    /// All that it is shown, in the order of names.
    Shown(Vec<Listed>),
    /// It does not look any more.
    Over,
}

/// Entry of a folder as a viewer is shown it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Listed {
    /// The name of its node.
    pub name: String,
    /// The number that it says about itself; `None` for one that cannot be read.
    pub number: Option<u64>,
    /// The transaction that wrote or made it, where that is known.
    pub zxid: Option<i64>,
}
