//! The `docent-server` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    docent_server::cli::run("docent-server", std::env::args_os().skip(1))
}
