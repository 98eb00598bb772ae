//! `docent completions`: completions for a shell.

use crate::app::App;
use crate::cli::Cli;
use crate::exit::{Ending, Outcome};
use clap::{Args, CommandFactory};
use clap_complete::Shell;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Shell to print completions for
    shell: Shell,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Outcome {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "docent", &mut text);
    app.output.bytes(&text)?;
    Ok(Ending::Done)
}
