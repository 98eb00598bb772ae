use docent_proto::OpCode;

/// True for an operation that a follower does not answer by itself but passes on to its leader.
pub(crate) fn needs_leader(op: OpCode) -> bool {
    is_write(op) || op == OpCode::Sync
}

/// True for an operation that is made as a transaction.
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
