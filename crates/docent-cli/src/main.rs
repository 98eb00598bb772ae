#![doc = include_str!("../README.md")]

mod app;
mod args;
mod child;
mod cli;
mod connect;
mod descriptors;
mod exit;
mod input;
mod log;
mod output;
mod verbs;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};
use cli::Cli;
use exit::Failure;
use std::process::ExitCode;

/// An empty variable after `--` must not turn a lock for a command into one that is held indefinitely.
const NO_COMMAND: &str = "nothing follows '--': expected a command or a value";

/// Runs the command line. Everything happens on the main thread, which lives as long as the process: a child
/// that dies with its spawning thread needs that.
fn main() -> ExitCode {
    if let Some(code) =
        child::become_command_if_invoked().or_else(child::keep_if_invoked).or_else(child::end_if_invoked)
    {
        return code;
    }
    let color = output::color_of_help(std::env::args_os().skip(1));
    let mut words = std::env::args_os();
    if words.any(|word| word == "--") && words.next().is_none() {
        Cli::command().color(color).error(ErrorKind::TooFewValues, NO_COMMAND).exit();
    }
    let mut command = Cli::command().color(color);
    let parsed = command.try_get_matches_from_mut(std::env::args_os());
    let cli = parsed.and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = cli.unwrap_or_else(|error| error.format(&mut command).exit());
    let output = output::Output::new(&cli.global);
    log::start(&cli.global, &output);
    let outcome = descriptors::check().and_then(|()| run(cli, &output));
    let signal = exit::signal_of(&outcome);
    let code = exit::report(outcome, &output);
    signal.into_iter().for_each(child::end_as_typed);
    code
}

/// Runs the verb on its own runtime.
fn run(cli: Cli, output: &output::Output) -> exit::Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::other(format!("cannot start: {error}")))?;
    let outcome = runtime.block_on(async {
        child::collect_orphans_if_first();
        verbs::run(cli, output.clone()).await
    });
    // A blocking read of standard input would otherwise delay the exit.
    runtime.shutdown_background();
    outcome
}
