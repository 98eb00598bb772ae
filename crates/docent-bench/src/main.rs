//! Benchmarks that compare Docent with other libraries on one server, and Docent's server with a real
//! ZooKeeper. Start them with `cargo xtask bench session`, `recipes`, `server`, `command-line`,
//! `inspect`, `console` or `code-paths`.
//!
//! The clients are measured in turns, each in a separate process: this binary starts itself as one of the
//! clients, so the measured CPU time belongs to that client alone. `docs/benchmarks.md` explains the measures
//! and how to read them.

mod clients;
mod code_paths;
mod command_line;
mod console;
mod docent;
mod inspect;
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
    /// Compare Docent's session, a bare client and zookeeper-client on one server.
    Session(session::Options),
    /// Compare the embedded server with a real ZooKeeper.
    Server(server::Options),
    /// Compare the recipes of Docent, Curator and kazoo on one server.
    Recipes(recipes::Options),
    /// Compare the `docent` command from start to exit with other ways to hold a lock.
    CommandLine(command_line::Options),
    /// Measure `docent ls --watch` over many locks.
    Inspect(inspect::Options),
    /// Measure `docent console` with many open pages.
    Console(console::Options),
    /// Print the code that single operations execute, and the size of the code.
    CodePaths(code_paths::Options),
    /// Run the process that callgrind profiles.
    #[command(hide = true)]
    CodePathWorker(code_paths::WorkerOptions),
    /// Hold a lock with one request after the other, for comparison with the `docent` command.
    #[command(hide = true)]
    SequentialLock(command_line::SequentialOptions),
    /// Run Docent's recipes: the command of the measured process.
    #[command(hide = true)]
    RecipeWorker,
    /// Run the embedded server: the command of the process whose memory is measured.
    #[command(hide = true)]
    Serve,
    /// Measure one client: the command of the measured processes.
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
        Bench::Inspect(options) => runtime.block_on(inspect::run(options)),
        Bench::Console(options) => runtime.block_on(console::run(options)),
        Bench::CodePaths(options) => runtime.block_on(code_paths::run(options)),
        Bench::CodePathWorker(options) => code_paths::work(&options),
        Bench::SequentialLock(options) => runtime.block_on(command_line::sequential_lock(options)),
        Bench::RecipeWorker => runtime.block_on(async { tokio::spawn(recipes::work()).await? }),
        Bench::Serve => runtime.block_on(async { tokio::spawn(server::serve()).await? }),
        // Spawned on a worker thread, like the tasks of a service. The thread of `block_on` is not a worker.
        Bench::Worker(options) => runtime.block_on(async { tokio::spawn(worker::run(options)).await? }),
    }
}
