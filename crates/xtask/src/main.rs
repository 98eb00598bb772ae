//! The project's own chores: `cargo xtask check | test | fix`.

mod cargo;
mod check;
mod fix;
mod packages;
mod stages;
mod summary;
mod test;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask check | test | fix

check   what must hold of every commit besides its tests: format, lints, docs, dependencies
test    every test, also those that need a real ZooKeeper, which is installed when missing (Debian, as root)
fix     applies what lints suggest, and formats";

fn main() -> ExitCode {
    let task = std::env::args().nth(1);
    let done = match task.as_deref() {
        Some("check") => check::run(),
        Some("test") => test::run(),
        Some("fix") => fix::run(),
        _ => Err(anyhow::anyhow!(USAGE)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
