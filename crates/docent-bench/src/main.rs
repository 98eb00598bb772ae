//! Docent side by side with its peers on one server, and its server side by side with a real ZooKeeper. Start
//! it with `cargo xtask bench session`, `recipes`, `server`, `command-line` or `code-paths`.
//!
//! The clients are measured in turns, each in a process of its own: this binary starts itself as one of them,
//! so that CPU time is the client's alone. `docs/benchmarks.md` explains the measures and how to read them.

mod clients;
mod code_paths;
mod command_line;
mod measures;
mod recipes;
mod report;
mod samples;
mod server;
mod session;
mod worker;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// Our session, a bare client and zookeeper-client on one server.
    Session(session::Options),
    /// The embedded server beside a real ZooKeeper.
    Server(server::Options),
    /// Our recipes, Curator's and kazoo's on one server.
    Recipes(recipes::Options),
    /// The command `docent` from start to exit, beside other ways to hold a lock.
    CommandLine(command_line::Options),
    /// The code that single operations execute, and the size of the code.
    CodePaths(code_paths::Options),
    /// The process that callgrind profiles.
    #[command(hide = true)]
    CodePathWorker(code_paths::WorkerOptions),
    /// A lock by one call after the other: a rival of the command.
    #[command(hide = true)]
    SequentialLock(command_line::SequentialOptions),
    /// Our recipes: the command of the measured process.
    #[command(hide = true)]
    RecipeWorker,
    /// The embedded server: the command of the process whose memory is measured.
    #[command(hide = true)]
    Serve,
    /// Measures one client: the command of the measured processes.
    #[command(hide = true)]
    Worker(worker::Options),
}

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    match Arguments::parse().bench {
        Bench::Session(options) => runtime.block_on(session::run(options)),
        Bench::Server(options) => runtime.block_on(server::run(options)),
        Bench::Recipes(options) => runtime.block_on(recipes::run(options)),
        Bench::CommandLine(options) => runtime.block_on(command_line::run(options)),
        Bench::CodePaths(options) => runtime.block_on(code_paths::run(options)),
        Bench::CodePathWorker(options) => code_paths::work(&options),
        Bench::SequentialLock(options) => runtime.block_on(command_line::sequential_lock(options)),
        Bench::RecipeWorker => runtime.block_on(async { tokio::spawn(recipes::work()).await? }),
        Bench::Serve => runtime.block_on(async { tokio::spawn(server::serve()).await? }),
        // On a worker's thread, as the tasks of a service run: the thread of `block_on` is none.
        Bench::Worker(options) => runtime.block_on(async { tokio::spawn(worker::run(options)).await? }),
    }
}
