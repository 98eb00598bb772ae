use docent_proto::OpCode;

/// Returns whether a follower passes the operation on to its leader instead of answering it.
pub(crate) fn needs_leader(op: OpCode) -> bool {
    is_write(op) || op == OpCode::Sync
}

/// Number of the operation by which servers delete containers. It is reserved for servers: the body that a
/// client sends is never a valid path.
pub(crate) const DELETE_CONTAINER: i32 = 20;

/// Returns whether an operation is answered before earlier requests of the same link.
pub(crate) fn jumps_the_line(op: OpCode) -> bool {
    matches!(op, OpCode::Auth | OpCode::Sasl)
}

/// Returns whether an operation is executed as a transaction.
pub(crate) fn is_write(op: OpCode) -> bool {
    match op {
        OpCode::Create
        | OpCode::Create2
        | OpCode::CreateContainer
        | OpCode::CreateTtl
        | OpCode::Delete
        | OpCode::SetData
        | OpCode::SetAcl
        | OpCode::Multi
        | OpCode::Check
        | OpCode::Reconfig
        | OpCode::CloseSession => true,
        OpCode::Exists
        | OpCode::GetData
        | OpCode::GetAcl
        | OpCode::GetChildren
        | OpCode::GetChildren2
        | OpCode::Sync
        | OpCode::Ping
        | OpCode::MultiRead
        | OpCode::CheckWatches
        | OpCode::RemoveWatches
        | OpCode::AddWatch
        | OpCode::Auth
        | OpCode::SetWatches
        | OpCode::SetWatches2
        | OpCode::Sasl
        | OpCode::GetEphemerals
        | OpCode::GetAllChildrenNumber
        | OpCode::WhoAmI => false,
    }
}
