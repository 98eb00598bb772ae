use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(super) action: Action,
}

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Print the value: byte for byte, or escaped on a terminal
    Get(Get),
    /// Publish a value
    Set(Set),
    /// Change the value in $VISUAL or $EDITOR, and publish it if nobody else did meanwhile
    ///
    /// Where the changed value is not published, also when the editor fails, the message says which file has
    /// it.
    Edit(Edit),
    /// Print the value and each one that follows, or run a command for each
    Watch(Watch),
    /// List the replaced values, the latest first
    History {
        /// Node of the value
        key: String,
    },
    /// Publish an earlier value again
    Rollback(Rollback),
}

#[derive(Debug, Args)]
pub(super) struct Get {
    /// Node of the value
    pub(super) key: String,
    /// Print a JSON object as NAME='value' lines for a shell
    ///
    /// Variables that decide which programs run, as PATH, LD_* and DOCENT_*, are left out, and a value with
    /// control characters is refused with 65.
    #[arg(long)]
    pub(super) env: bool,
}

#[derive(Debug, Args)]
pub(super) struct Set {
    /// Node of the value
    pub(super) key: String,
    /// The value; without one it is read from standard input
    pub(super) value: Option<String>,
    /// Read the value from this file
    #[arg(long, value_name = "FILE", conflicts_with = "value")]
    pub(super) file: Option<PathBuf>,
    /// Publish only if the present value has this version
    #[arg(long, value_name = "VERSION")]
    pub(super) if_version: Option<i32>,
    /// Publish only if there is no value
    #[arg(long, conflicts_with = "if_version")]
    pub(super) if_absent: bool,
    /// Refuse a value that is not JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Edit {
    /// Node of the value
    pub(super) key: String,
    /// Refuse a value that is not JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Watch {
    /// Node of the value
    pub(super) key: String,
    /// Set the members of a JSON object as variables for the command, or print them as NAME='value' lines
    ///
    /// Variables that decide which programs run, as PATH, LD_* and DOCENT_*, are left out.
    #[arg(long)]
    pub(super) env: bool,
    /// Leave out the value that is there at the start
    #[arg(long)]
    pub(super) changes_only: bool,
    /// Command to run for each value, which it gets on standard input; DOCENT_PATH and DOCENT_VERSION are set
    #[arg(last = true, value_name = "CMD")]
    pub(super) command: Vec<std::ffi::OsString>,
}

#[derive(Debug, Args)]
pub(super) struct Rollback {
    /// Node of the value
    pub(super) key: String,
    /// Version to go back to, as `history` lists it [default: the latest of the history]
    pub(super) version: Option<i32>,
}
