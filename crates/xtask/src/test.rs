use crate::cargo::{cargo, run as execute};
use crate::differential;
use crate::packages;
use crate::panics::Panics;
use crate::simulate;
use crate::stages::Stages;
use crate::summary::Summary;
use crate::versions::as_newer;
use anyhow::{Context, Result, bail, ensure};
use std::env;
use std::io::{BufRead, BufReader};
use std::num::NonZero;
use std::process::{Command, Stdio};
use std::thread::available_parallelism;

const TESTS: &str = "test --workspace --all-features --no-fail-fast";

/// Variable by which a test runner is told how many tests may run at the same time.
const TEST_THREADS: &str = "RUST_TEST_THREADS";

/// Most tests wait for a session to end, a link to come back or a server to start, and leave the cores idle.
const THREADS_PER_CORE: usize = 2;

/// Every test, also those that need a real ZooKeeper, or the clients of others: Curator, kazoo, the one in C.
/// At the end it shows again what failed tests panicked with; the last line says how many passed, failed and
/// were skipped.
pub(crate) fn run() -> Result<()> {
    let (mut summary, mut panics) = (Summary::default(), Panics::default());
    let done = run_stages(&mut summary, &mut panics);
    print!("{panics}");
    if let Err(error) = &done {
        eprintln!("error: {error:#}");
    }
    println!("{summary}");
    if done.is_err() { std::process::exit(1) } else { Ok(()) }
}

fn run_stages(summary: &mut Summary, panics: &mut Panics) -> Result<()> {
    let mut stages = Stages::start();
    stages.run("packages", || {
        packages::ensure_zookeeper()?;
        packages::ensure_curator()?;
        packages::ensure_c_client()?;
        packages::ensure_python()
    })?;
    let built = stages.run("build", || execute(&mut cargo(&format!("{TESTS} --no-run"))));
    // Tests that could be built run all the same.
    let mut command = cargo(&format!("{TESTS} -- --include-ignored"));
    let tested = stages.run("tests", || tests(&mut command, summary, panics));
    // Watches and the mechanisms on top of them, where the servers say which transaction an event is of.
    let newer = stages.run("embedded as 3.9", || {
        tests(&mut as_newer(&["config"], &["embedded::"]), summary, panics)?;
        tests(&mut as_newer(&["core"], &["watch", "cache", "--skip", "::real::"]), summary, panics)
    });
    let compared = stages.run("differential", differential::stage);
    let simulated = stages.run("simulation", simulate::stage);
    stages.finish();
    built.and(tested).and(newer).and(compared).and(simulated)
}

fn cores() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

fn tests(command: &mut Command, summary: &mut Summary, panics: &mut Panics) -> Result<()> {
    if env::var_os(TEST_THREADS).is_none() {
        command.env(TEST_THREADS, (THREADS_PER_CORE * cores()).to_string());
    }
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot run {command:?}"))?;
    let output = child.stdout.take().context("the output was not piped")?;
    for line in BufReader::new(output).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        summary.add_line(&line);
        panics.add_line(&line);
    }
    let status = child.wait()?;
    if summary.failed > 0 {
        bail!("{} tests failed", summary.failed);
    }
    ensure!(status.success(), "{command:?} failed: {status}");
    ensure!(summary.is_good(), "no test was run");
    Ok(())
}
