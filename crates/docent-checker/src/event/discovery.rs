use std::time::Duration;

/// An event of a member of a folder: an instance of a service, or a member of a group.
///
/// The member's data is a number that no other member uses in the run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Announcing {
    /// The member starts to announce itself with this number, or changes its number.
    Requested {
        /// Path of the member's node, as the server knows it.
        path: String,
        /// The number that is the member's data.
        number: u64,
    },
    /// The call that writes this number to the servers returned.
    Written(u64),
    /// The member starts to leave, or gave up.
    Leaving,
    /// The call that removes the member returned success.
    Left,
}

/// An event of a viewer of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Viewing {
    /// The viewer starts.
    Opened {
        /// The folder, as the server knows it.
        folder: String,
        /// Time for which a deleted member is still shown.
        grace: Duration,
    },
    /// The complete list that the viewer is shown, ordered by name.
    Shown(Vec<Listed>),
    /// The viewer stopped.
    Stopped,
}

/// An entry of a folder, as a viewer is shown it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Listed {
    /// Name of the member's node.
    pub name: String,
    /// The number that is the member's data; `None` if the data cannot be read.
    pub number: Option<u64>,
    /// The transaction that created or last wrote the node, if it is known.
    pub zxid: Option<i64>,
}
