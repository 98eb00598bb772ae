//! One run of the unmodified stack on simulated machines, network and time: one process, one seed.
//!
//! The process's clock and its source of random numbers are simulated too, once and for the whole process. So
//! the process cannot measure how long a run takes; `cargo xtask simulate` does.

mod client;
mod clock;
mod controls;
mod faults;
mod listener;
mod observer;
mod operator;
mod options;
mod outcome;
mod plan;
mod report;
mod server;
mod setting;
mod theme;
mod transport;
mod trap;
mod wire;
mod workload;
mod world;

use anyhow::Result;
use options::Options;
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::io::Write;
use world::World;

fn main() {
    let code = match run() {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(error) => {
            eprintln!("error: {error:#}");
            2
        }
    };
    let _ = std::io::stdout().flush();
    // The rest of the world is not torn down, because nothing in it matters any more.
    std::process::exit(code);
}

/// Returns true if nothing failed.
fn run() -> Result<bool> {
    if std::env::args().any(|argument| argument == "--list-planted") {
        defects().for_each(|name| println!("{name} {}", workload::of_defect(name)));
        return Ok(true);
    }
    if std::env::args().any(|argument| argument == "--list-planted-tests") {
        defects_of_tests().for_each(|(name, test)| println!("{name} {test}"));
        return Ok(true);
    }
    if std::env::args().any(|argument| argument == "--list-recipes") {
        workload::names().for_each(|name| println!("{name}"));
        return Ok(true);
    }
    let options = Options::parse(std::env::args().skip(1))?;
    plant(options.planted.as_deref())?;
    if let Some(log) = &options.log {
        tracing_subscriber::fmt().with_env_filter(log).without_time().with_writer(std::io::stderr).init();
    }
    mad_turmoil::rand::set_rng(StdRng::seed_from_u64(options.seed));
    fastrand::seed(options.seed);
    // Simulate the clocks for the whole life of the process.
    std::mem::forget(mad_turmoil::time::SimClocksGuard::init());
    let outcome = World::new(&options)?.run();
    report::print(&options, &outcome);
    Ok(outcome.failures.is_empty())
}

#[cfg(docent_planted)]
fn plant(name: Option<&str>) -> Result<()> {
    let Some(name) = name else { return Ok(()) };
    let of_servers = docent_server::planted::Planted::ALL.iter().find(|defect| defect.name() == name);
    match of_servers {
        Some(defect) => docent_server::planted::plant(Some(*defect)),
        None => docent::planted::plant(name)?,
    }
    Ok(())
}

/// The names of this build's defects that a run can show: those of the client, and those of servers that a
/// workload shows.
#[cfg(docent_planted)]
fn defects() -> impl Iterator<Item = &'static str> {
    use docent::planted::Planted as OfClient;
    use docent_server::planted::Planted as OfServer;

    let of_client = OfClient::ALL.iter().filter(|defect| defect.test().is_none()).map(|defect| defect.name());
    let of_servers = OfServer::ALL.iter().map(|defect| defect.name());
    of_client.chain(of_servers.filter(|name| workload::shows(name)))
}

/// The names of the other defects, each with the test that detects it.
#[cfg(docent_planted)]
fn defects_of_tests() -> impl Iterator<Item = (&'static str, &'static str)> {
    use docent::planted::Planted as OfClient;
    use docent_server::planted::Planted as OfServer;

    let of_client = OfClient::ALL.iter().filter_map(|defect| Some((defect.name(), defect.test()?)));
    of_client.chain(OfServer::ALL.iter().filter_map(|defect| Some((defect.name(), defect.test()?))))
}

#[cfg(not(docent_planted))]
fn defects() -> impl Iterator<Item = &'static str> {
    std::iter::empty()
}

#[cfg(not(docent_planted))]
fn defects_of_tests() -> impl Iterator<Item = (&'static str, &'static str)> {
    std::iter::empty()
}

#[cfg(not(docent_planted))]
fn plant(name: Option<&str>) -> Result<()> {
    anyhow::ensure!(name.is_none(), "--planted needs a build with --cfg docent_planted");
    Ok(())
}
