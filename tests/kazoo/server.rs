//! The program `docent-server`, for the suites of this package.

use std::process::ExitCode;

fn main() -> ExitCode {
    docent_server::cli::run("docent-server", std::env::args_os().skip(1))
}
