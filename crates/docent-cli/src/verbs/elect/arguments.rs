use crate::child::LossArguments;
use clap::Args;
use std::ffi::OsString;

/// Stand for election, and run CMD while leading; without CMD print path and fence of each term.
///
/// CMD is started when a term begins, and is dead before the term's lease ends. When CMD ends the term does,
/// and docent stands again, at the end of the line, no sooner than a second after the term began: CMD is
/// started again with the next term. CMD that cannot be run, or is ended by SIGTERM, SIGINT or SIGQUIT that
/// docent passed on, is the end, with its exit code. Its environment is that of `docent lock`.
/// Processes that it leaves in its group are ended before the term is. When somebody asks the leader to
/// leave, CMD gets SIGTERM; without CMD docent ends.
///
/// A signal that comes while it stands ends docent with 128 + its number; without CMD one that comes while it
/// leads resigns, and ends docent with 0.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Path of the election
    pub(super) path: String,

    /// Lead for one term, and end as CMD does; with 76 if the term is lost
    #[arg(long)]
    pub(super) once: bool,

    /// Id that others see [default: host and process]
    #[arg(long)]
    pub(super) id: Option<String>,

    /// Do not stand: print a line for each leader, its id and fence, `-` while nobody leads
    #[arg(long, conflicts_with_all = ["once", "id", "kill_after", "on_lost", "command"])]
    pub(super) listen: bool,

    #[command(flatten)]
    pub(super) loss: LossArguments,

    /// Command to run, after `--`
    #[arg(last = true, value_name = "CMD")]
    pub(super) command: Vec<OsString>,
}
