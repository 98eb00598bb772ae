use crate::DecodeError;

macro_rules! op_codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        /// Number of an operation on the wire.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(i32)]
        pub enum OpCode {
            $($(#[$doc])* $name = $value,)*
        }

        impl OpCode {
            /// All operations.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the operation with this number.
            ///
            /// # Errors
            /// [`DecodeError::UnknownOpCode`] if this codec does not know the number.
            pub fn from_number(number: i32) -> Result<Self, DecodeError> {
                match number {
                    $($value => Ok(Self::$name),)*
                    other => Err(DecodeError::UnknownOpCode(other)),
                }
            }
        }
    };
}

op_codes! {
    /// Create a node; the reply contains the path.
    Create = 1;
    /// Delete a node.
    Delete = 2;
    /// Get the stat of a node.
    Exists = 3;
    /// Get the data of a node.
    GetData = 4;
    /// Set the data of a node.
    SetData = 5;
    /// Read the access control list.
    GetAcl = 6;
    /// Set the access control list.
    SetAcl = 7;
    /// Get the names of the children.
    GetChildren = 8;
    /// Wait until the server has caught up with the leader.
    Sync = 9;
    /// Heartbeat.
    Ping = 11;
    /// Get the names of the children and the stat.
    GetChildren2 = 12;
    /// Check a version, in a multi.
    Check = 13;
    /// Several writes, all or none.
    Multi = 14;
    /// Create a node; the reply contains the path and the stat.
    Create2 = 15;
    /// Change the ensemble's members.
    Reconfig = 16;
    /// Check that a watch is set.
    CheckWatches = 17;
    /// Remove watches.
    RemoveWatches = 18;
    /// Create a container.
    CreateContainer = 19;
    /// Create a node with a time to live.
    CreateTtl = 21;
    /// Several reads in one request.
    MultiRead = 22;
    /// Add credentials.
    Auth = 100;
    /// Set watches again after a reconnect.
    SetWatches = 101;
    /// One step of a SASL authentication.
    Sasl = 102;
    /// Get the ephemeral nodes of the session.
    GetEphemerals = 103;
    /// Get the number of all nodes below a node.
    GetAllChildrenNumber = 104;
    /// Set watches of all modes again after a reconnect.
    SetWatches2 = 105;
    /// Set a persistent watch.
    AddWatch = 106;
    /// Get the identities of the client.
    WhoAmI = 107;
    /// End the session.
    CloseSession = -11;
}
