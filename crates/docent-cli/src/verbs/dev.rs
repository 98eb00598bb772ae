//! `docent dev`: the embedded server, for development.

use crate::app::App;
use crate::child::{self, ChildCommand, Signals};
use crate::exit::{Ending, Failure, Outcome};
use crate::output::Output;
use clap::Args;
use docent::server::Server;
use serde::Serialize;
use std::ffi::OsString;
use std::io;
use tokio::task::spawn_blocking;

/// Port of the server if no command is run.
const PORT: u16 = 2181;

/// Run the embedded server: in memory, for development.
///
/// With CMD, the server listens on any free port, sets DOCENT_CONNECT, runs CMD and stops when CMD ends.
/// Without CMD, it prints its address and serves until a signal comes.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Port on loopback, 0 for any free port [default: 2181, with CMD 0]
    #[arg(long)]
    port: Option<u16>,

    /// Command to run, after `--`
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// A listening server, as printed.
#[derive(Debug, Serialize)]
struct Line<'a> {
    connect: &'a str,
}

pub(crate) async fn run(app: &App, arguments: &Arguments) -> Outcome {
    let mut signals = Signals::listen()?;
    let command = ChildCommand::new(&arguments.command);
    let port = arguments.port.unwrap_or(if command.is_some() { 0 } else { PORT });
    let started = Server::builder().port(port).start().await;
    let server = started.map_err(|error| Failure::other(error.to_string()))?;
    let outcome = match command {
        Some(command) => run_command(&server, command, &mut signals).await,
        None => serve(app, &server, &mut signals).await,
    };
    server.stop().await;
    outcome
}

async fn run_command(server: &Server, command: ChildCommand, signals: &mut Signals) -> Outcome {
    let command = command.variable("DOCENT_CONNECT", server.connect_string());
    Ok(Ending::Child(child::run(&command, signals).await?))
}

async fn serve(app: &App, server: &Server, signals: &mut Signals) -> Outcome {
    let (output, connect) = (app.output.clone(), server.connect_string().to_owned());
    // Print on a separate thread: a pipe that is not read must not block the server, which runs on this
    // thread.
    let printed = spawn_blocking(move || print(&output, &connect));
    tokio::select! {
        biased;
        _ = signals.next() => return Ok(Ending::Done),
        printed = printed => printed.map_err(io::Error::from)??,
    }
    signals.next().await;
    Ok(Ending::Done)
}

fn print(output: &Output, connect: &str) -> io::Result<()> {
    if output.is_json() { output.json(&Line { connect }) } else { output.line(connect) }
}
