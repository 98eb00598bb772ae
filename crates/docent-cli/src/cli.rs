//! The arguments of the command.

use crate::args::Global;
use crate::verbs;
use clap::{Parser, Subcommand};

/// Coordination on Apache ZooKeeper: locks, elections, services, queues and configuration, for scripts and
/// for operators.
#[derive(Debug, Parser)]
#[command(name = "docent", version, disable_help_subcommand = true, infer_long_args = false)]
#[command(after_long_help = crate::exit::HELP)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Verbs of the command, in the order of its help.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Lock(verbs::lock::Arguments),
    Elect(verbs::elect::Arguments),
    Dev(verbs::dev::Arguments),
    /// Announce an instance of a service while a command lives.
    Register(verbs::register::Arguments),
    /// List services and their instances.
    Discover(verbs::discover::Arguments),
    /// Read, publish and follow values of configuration.
    Config(verbs::config::Arguments),
    /// Put and take items of a queue.
    Queue(verbs::queue::Arguments),
    /// Tell which recipe a path is, and how it stands.
    Inspect(verbs::inspect::Arguments),
    /// List the recipes below a path.
    Ls(verbs::inspect::ListArguments),
    /// Ask a holder of a lock to leave.
    Revoke(verbs::contenders::RevokeArguments),
    /// Delete the node of a holder or waiter, after showing whose it is.
    Break(verbs::contenders::BreakArguments),
    /// Check servers and settings, and say what to do about each finding.
    Doctor(verbs::doctor::Arguments),
    /// Print completions for a shell.
    Completions(verbs::completions::Arguments),
    /// Print the manual page.
    Man(verbs::man::Arguments),
}
