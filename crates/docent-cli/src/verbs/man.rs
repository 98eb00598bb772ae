//! `docent man`: the manual pages.

use crate::app::App;
use crate::cli::Cli;
use crate::exit::{Ending, Failure, Outcome};
use clap::{Args, Command, CommandFactory};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Folder for `docent.1` and a page per verb, instead of printing the main page; created if missing
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Outcome {
    let mut command = Cli::command();
    command.build();
    match &arguments.out {
        None => app.output.bytes(&page(&command)?)?,
        Some(folder) => {
            fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
            write_all(&command, folder)?;
        }
    }
    Ok(Ending::Done)
}

fn write_all(command: &Command, folder: &Path) -> Result<(), Failure> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let file = folder.join(format!("{name}.1"));
    fs::write(&file, page(command)?).map_err(|error| unwritable(&file, &error))?;
    let mut verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help");
    verbs.try_for_each(|verb| write_all(verb, folder))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::other(format!("cannot write {}: {error}", path.display()))
}

/// Adds the `--` that separates CMD from the options, because a manual page does not show it.
fn with_separator(command: Command) -> Command {
    let last = command.get_positionals().find(|argument| argument.is_last_set());
    match last.map(|argument| argument.get_id().clone()) {
        Some(id) => command.mut_arg(id, |argument| argument.value_name("-- CMD...")),
        None => command,
    }
}

fn page(command: &Command) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    clap_mangen::Man::new(with_separator(command.clone()).after_long_help(crate::exit::HELP))
        .render(&mut page)
        .map_err(|error| Failure::other(format!("cannot render the manual page: {error}")))?;
    Ok(page)
}
