use super::environment::{allowed, prefix};
use crate::exit::Failure;
use crate::output::Output;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(super) action: Action,
}

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Print the value: unchanged, or escaped on a terminal
    Get(Get),
    /// Publish a value
    Set(Set),
    /// Change the value in $VISUAL or $EDITOR, and publish it unless it was changed meanwhile
    ///
    /// If the changed value is not published, even because the editor failed, the message names the file that
    /// has it. The file is in the folder of TMPDIR or in /tmp, or else in that of XDG_RUNTIME_DIR or in
    /// /dev/shm.
    Edit(Edit),
    /// List the values at a path and below it
    Ls {
        /// Path to start at
        #[arg(default_value = "/")]
        prefix: String,
    },
    /// Delete a value and its history, after showing its version
    ///
    /// A value that another client publishes meanwhile is not deleted.
    Delete(Delete),
    /// Write the values at a path and below it as JSON lines with `path` and `value`, for `import`
    ///
    /// Histories, access control lists and nodes of other recipes are not exported.
    Export {
        /// Path to start at
        #[arg(default_value = "/")]
        prefix: String,
    },
    /// Publish the values of a file that `export` wrote, all or none
    ///
    /// A value that is the same is unchanged. One that differs is a conflict: docent lists the conflicts, and
    /// exits with 1 without importing anything. All values are published in one transaction, which fails if
    /// another client changes one of them meanwhile. Replaced values are added to their histories.
    Import(Import),
    /// Print the value and every later one, or run a command for each
    ///
    /// A deletion is reported, with JSON output as an object with `deleted`; CMD is not run for it. docent
    /// continues if CMD fails, but ends with 126 or 127 if CMD cannot be run.
    Watch(Watch),
    /// List the current and the earlier values, the latest first
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
    #[command(flatten)]
    pub(super) env: Env,
}

/// Members of a JSON object as variables.
#[derive(Debug, Args)]
pub(super) struct Env {
    /// Members of a JSON object as variables: set for CMD, or printed as NAME='value' lines for a shell
    ///
    /// Any client that may write the value chooses the names: --env-prefix says which ones it may choose.
    /// Skipped, with a remark, are variables that are known to decide what runs, such as PATH, LD_* and
    /// PYTHON*. When printing, a value with control characters is refused with 65.
    #[arg(long, requires = "names")]
    env: bool,
    /// Take only members whose variable names start with this prefix, such as APP_
    #[arg(long, value_name = "PREFIX", requires = "env", group = "names", value_parser = prefix)]
    env_prefix: Option<String>,
    /// Take members of any name; a writer of the value can then make many programs run its code
    ///
    /// Names that are already in the environment of docent are skipped, with a remark.
    #[arg(long, requires = "env", group = "names")]
    env_any: bool,
}

impl Env {
    /// Returns true if members are wanted as variables.
    pub(super) fn is_wanted(&self) -> bool {
        self.env
    }

    /// Returns the variables of a value, as [`allowed`] does.
    ///
    /// # Errors
    /// Same as [`allowed`].
    pub(super) fn variables(&self, output: &Output, value: &[u8]) -> Result<Vec<(String, String)>, Failure> {
        let prefix = self.env_prefix.as_deref().filter(|_| !self.env_any);
        allowed(output, value, prefix)
    }
}

#[derive(Debug, Args)]
pub(super) struct Set {
    /// Node of the value
    pub(super) key: String,
    /// The value; read from standard input if omitted
    pub(super) value: Option<String>,
    /// Read the value from this file
    #[arg(long, value_name = "FILE", conflicts_with = "value")]
    pub(super) file: Option<PathBuf>,
    /// Publish only if the current value has this version
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
    #[command(flatten)]
    pub(super) env: Env,
    /// Print a row for each change, with the old and the new value
    #[arg(long, conflicts_with_all = ["env", "command"])]
    pub(super) diff: bool,
    /// Like --diff, for all values below the node
    #[arg(long, conflicts_with_all = ["env", "command"])]
    pub(super) below: bool,
    /// Skip the value that exists at the start
    #[arg(long)]
    pub(super) changes_only: bool,
    /// Command to run for each value, which it gets on standard input; DOCENT_PATH and DOCENT_VERSION are set
    #[arg(last = true, value_name = "CMD")]
    pub(super) command: Vec<std::ffi::OsString>,
}

#[derive(Debug, Args)]
pub(super) struct Delete {
    /// Node of the value
    pub(super) key: String,
    /// Delete only if the current value has this version
    #[arg(long, value_name = "VERSION")]
    pub(super) if_version: Option<i32>,
    /// Do not ask for confirmation
    #[arg(long)]
    pub(super) yes: bool,
}

#[derive(Debug, Args)]
pub(super) struct Import {
    /// File with one JSON object per line; - for standard input
    pub(super) file: PathBuf,
    /// Replace values that differ
    #[arg(long)]
    pub(super) overwrite: bool,
    /// Only show what would be done
    #[arg(long)]
    pub(super) dry_run: bool,
}

#[derive(Debug, Args)]
pub(super) struct Rollback {
    /// Node of the value
    pub(super) key: String,
    /// Version to restore, as listed by `history` [default: the latest of the history]
    pub(super) version: Option<i32>,
}
