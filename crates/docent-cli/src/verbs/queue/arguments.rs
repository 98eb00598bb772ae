use crate::args::duration;
use crate::child::LossArguments;
use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(super) action: Action,
}

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Put items: the given ones, or each line of standard input
    ///
    /// Items keep their order. Items that are available together are put in one step. If an item fails, the
    /// items before it are in the queue and none after it, and the message has their numbers.
    Put(Put),
    /// Take an item: print and acknowledge it, or run a command for it
    ///
    /// CMD gets the item on standard input. If CMD exits with 0, the item is acknowledged. Otherwise the item
    /// returns to the queue and is delivered again; after 16 deliveries it becomes a dead letter. With
    /// --follow, redelivery waits for a delay that doubles each time, and no command starts within a second
    /// of the start of one that failed. CMD's environment has DOCENT_PATH, DOCENT_FENCE, DOCENT_ITEM (a name
    /// that no other item has) and DOCENT_DELIVERIES.
    Take(Take),
    /// Print the item that would be delivered next, without taking it
    Peek(Path),
    /// Print the number of items, including items in work
    Len(Path),
    /// List the dead letters, the oldest first
    Dead(Path),
    /// Put dead letters back into the queue
    Requeue(Requeue),
}

impl Action {
    /// Returns the path of the queue.
    pub(super) fn path(&self) -> &str {
        match self {
            Self::Put(put) => &put.path,
            Self::Take(take) => &take.path,
            Self::Peek(path) | Self::Len(path) | Self::Dead(path) => &path.path,
            Self::Requeue(requeue) => &requeue.path,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct Path {
    /// Path of the queue
    pub(super) path: String,
}

#[derive(Debug, Args)]
pub(super) struct Put {
    /// Path of the queue
    pub(super) path: String,
    /// Items; if none are given, each line of standard input is one
    pub(super) items: Vec<String>,
    /// Deliver the items only after this time
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) delay: Option<Duration>,
    /// Deliver the items before items with a higher number
    #[arg(long, value_name = "NUMBER", default_value_t = 0, allow_negative_numbers = true)]
    pub(super) priority: i32,
    /// Maximum number of items in the queue, 0 for no limit: items beyond it are not put
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000)]
    pub(super) capacity: usize,
    /// Treat all of standard input as one item
    #[arg(long, conflicts_with = "items")]
    pub(super) whole: bool,
}

#[derive(Debug, Args)]
pub(super) struct Take {
    /// Path of the queue
    pub(super) path: String,
    /// Do not wait: fail with 75 if there is no item
    #[arg(short, long, conflicts_with = "wait")]
    pub(super) nonblock: bool,
    /// Maximum time to wait for an item, such as 30s; then fail with 75
    #[arg(short, long, value_name = "TIME", value_parser = duration)]
    pub(super) wait: Option<Duration>,
    /// Continue with the next item until a signal comes; with --nonblock or --wait, until there is none
    #[arg(short, long)]
    pub(super) follow: bool,
    #[command(flatten)]
    pub(super) loss: LossArguments,
    /// Command to run for the item, after `--`
    #[arg(last = true, value_name = "CMD")]
    pub(super) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(super) struct Requeue {
    /// Path of the queue
    pub(super) path: String,
    /// Names of dead letters, as listed by `dead`
    #[arg(required_unless_present = "all")]
    pub(super) names: Vec<String>,
    /// All current dead letters
    #[arg(long, conflicts_with = "names")]
    pub(super) all: bool,
}
