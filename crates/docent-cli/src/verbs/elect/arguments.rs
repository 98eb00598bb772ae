use crate::child::LossArguments;
use clap::Args;
use std::ffi::OsString;
use std::num::NonZero;

/// Stand for election, and run CMD while leading; without CMD, print path and fence of each term.
///
/// CMD is started when a term begins, and is dead before the term's lease ends. When CMD ends, so does the
/// term, and docent stands again at the end of the queue, at least one second after the term began; the next
/// term starts CMD again. If CMD ends with another code than 0, docent reports that and doubles this time
/// with each failure in a row, up to one minute. docent exits with CMD's exit code if CMD cannot be run, or
/// is ended by SIGTERM, SIGINT or SIGQUIT that docent passed on. CMD's environment is that of `docent lock`.
/// Processes that CMD leaves in its group are ended before the term is. If another client asks the leader to
/// leave, CMD gets SIGTERM; without CMD, docent exits.
///
/// A signal while docent stands for election ends docent with 128 + its number. Without CMD, a signal while
/// docent leads makes it resign and exit with 0.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Path of the election
    pub(super) path: String,

    /// Lead for one term, and exit with CMD's code; with 76 if the term is lost
    #[arg(long)]
    pub(super) once: bool,

    /// Exit with CMD's code when CMD has failed in N terms in a row [default: never]
    ///
    /// A run of more than a minute counts as the first failure.
    #[arg(long, value_name = "N")]
    pub(super) max_failures: Option<NonZero<u32>>,

    /// Id that other candidates see [default: host and process]
    #[arg(long)]
    pub(super) id: Option<String>,

    /// Only observe: print a line for each leader with its id and fence, or `-` if there is none
    #[arg(long, conflicts_with_all = ["once", "id", "max_failures", "kill_after", "on_lost", "command"])]
    pub(super) listen: bool,

    #[command(flatten)]
    pub(super) loss: LossArguments,

    /// Command to run, after `--`
    #[arg(last = true, value_name = "CMD")]
    pub(super) command: Vec<OsString>,
}
