use crate::DecodeError;

macro_rules! op_codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        /// The number of an operation on the wire.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(i32)]
        pub enum OpCode {
            $($(#[$doc])* $name = $value,)*
        }

        impl OpCode {
            /// Every operation there is.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The operation that `number` stands for.
            ///
            /// # Errors
            /// [`DecodeError::UnknownOpCode`] when this codec does not know it.
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
    /// Create, answered with the path.
    Create = 1;
    /// Delete.
    Delete = 2;
    /// Stat of a node.
    Exists = 3;
    /// Data of a node.
    GetData = 4;
    /// Set data.
    SetData = 5;
    /// Read the access control list.
    GetAcl = 6;
    /// Set the access control list.
    SetAcl = 7;
    /// Names of the children.
    GetChildren = 8;
    /// Catch up with the leader.
    Sync = 9;
    /// Sign of life.
    Ping = 11;
    /// Names of the children and the stat.
    GetChildren2 = 12;
    /// Check of a version, in a multi.
    Check = 13;
    /// Several writes, all or none.
    Multi = 14;
    /// Create, answered with path and stat.
    Create2 = 15;
    /// Change of the ensemble's members.
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
    /// Credentials.
    Auth = 100;
    /// Watches set again after a reconnect.
    SetWatches = 101;
    /// Step of an authentication by SASL.
    Sasl = 102;
    /// Ephemeral nodes of the session.
    GetEphemerals = 103;
    /// Number of the nodes below a node.
    GetAllChildrenNumber = 104;
    /// Watches of all modes set again after a reconnect.
    SetWatches2 = 105;
    /// Set a watch that stays.
    AddWatch = 106;
    /// Identities of the client.
    WhoAmI = 107;
    /// End of the session.
    CloseSession = -11;
}
