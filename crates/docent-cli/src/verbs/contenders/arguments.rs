use clap::Args;

/// Ask a holder of a lock to leave. The holder may ignore the request: only its program knows what is safe.
#[derive(Debug, Args)]
pub(crate) struct RevokeArguments {
    /// Path of a mutex, read/write lock or semaphore
    pub(super) path: String,

    /// Name of a contender, as listed by `inspect` [default: all holders]
    pub(super) name: Option<String>,
}

/// Delete the node of a holder or waiter, or the claim of a queue item, after showing its owner.
///
/// A live holder learns of the deletion no sooner than the next holder, and may keep working for a moment:
/// only resources that check the fence are safe from that. Ask the holder to leave with `revoke` first. A
/// live waiter rejoins the queue at its end.
#[derive(Debug, Args)]
pub(crate) struct BreakArguments {
    /// Path of a lock, an election or a queue
    pub(super) path: String,

    /// Name of a contender or of a claimed item, as listed by `inspect` [default: the holder]
    pub(super) name: Option<String>,

    /// Do not ask for confirmation
    #[arg(long)]
    pub(super) yes: bool,
}
