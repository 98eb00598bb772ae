use clap::Args;

/// Ask a holder of a lock to leave. It may ignore that: only its program can tell what is safe.
#[derive(Debug, Args)]
pub(crate) struct RevokeArguments {
    /// Path of a mutex, read/write lock or semaphore
    pub(super) path: String,

    /// Name of a contender, as `inspect` lists it [default: all who hold]
    pub(super) name: Option<String>,
}

/// Delete the node of a holder or waiter, or the claim of an item in a queue, after showing whose it is.
///
/// A holder that lives learns of it as fast as the next one does, and may work on for a moment: only what
/// checks the fence is safe from that. Ask it to leave with `revoke` first. A waiter that lives stands in the
/// line again, at its end.
#[derive(Debug, Args)]
pub(crate) struct BreakArguments {
    /// Path of a lock, an election or a queue
    pub(super) path: String,

    /// Name of a contender or of a claimed item, as `inspect` lists it [default: the one that holds]
    pub(super) name: Option<String>,

    /// Do not ask
    #[arg(long)]
    pub(super) yes: bool,
}
