//! Command-line arguments.

use crate::args::Global;
use crate::verbs;
use clap::{Parser, Subcommand};

/// Coordination on Apache ZooKeeper: locks, elections, services, queues and configuration, for scripts and
/// operators.
#[derive(Debug, Parser)]
#[command(name = "docent", version, infer_long_args = false)]
#[command(after_long_help = crate::exit::HELP)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Verbs of the command, in the order of the help.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Lock(verbs::lock::Arguments),
    Elect(verbs::elect::Arguments),
    Dev(verbs::dev::Arguments),
    /// Announce an instance of a service while a command runs.
    Register(verbs::register::Arguments),
    /// List services and their instances.
    Discover(verbs::discover::Arguments),
    /// Read, publish and follow configuration values.
    Config(verbs::config::Arguments),
    /// Put and take items of a queue.
    Queue(verbs::queue::Arguments),
    /// Show which recipe a path is, and its state.
    Inspect(verbs::inspect::Arguments),
    /// List the recipes below a path.
    Ls(verbs::inspect::ListArguments),
    Sessions(verbs::sessions::Arguments),
    Wait(verbs::wait::Arguments),
    /// Ask a holder of a lock to leave.
    Revoke(verbs::contenders::RevokeArguments),
    /// Delete the node of a holder or waiter, after showing its owner.
    Break(verbs::contenders::BreakArguments),
    /// Check servers and settings, and suggest a remedy for each problem.
    Doctor(verbs::doctor::Arguments),
    Ensemble(verbs::ensemble::Arguments),
    Console(verbs::console::Arguments),
    /// List the contexts, and choose the current one.
    Contexts(verbs::contexts::Arguments),
    Completions(verbs::completions::Arguments),
    /// Print values that complete a line, for the scripts of `completions`.
    #[command(name = "__complete", hide = true)]
    Complete(verbs::complete::Arguments),
    /// Print the manual page.
    Man(verbs::man::Arguments),
}
