use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(super) action: Action,
}

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// List the contexts of the file; an asterisk marks the current one
    List,
    /// Print the name of the current context
    Current,
    /// Make a context the current one
    ///
    /// Only the line of `current` changes: comments, order and the file's mode are kept. The file is replaced
    /// atomically. While DOCENT_CONNECT is set, or with --connect, the current context is not used.
    Use {
        /// Name of the context
        name: String,
    },
}
