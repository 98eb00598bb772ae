//! All tests of the workspace, including those that need third-party software.

mod changed;
mod cpu;
mod job;
mod panics;
mod report;
mod runner;
mod shared_server;
mod summary;

use crate::stages::{Stages, Target};
use crate::versions::EMBEDDED_AS;
use crate::{differential, packages, simulate};
use anyhow::{Context, Result, anyhow, bail, ensure};
use job::{Built, Job};
use report::Report;
use shared_server::SharedServer;
use std::collections::BTreeSet;
use std::fs;
use std::num::NonZero;
use std::path::Path;
use std::process::Command;
use std::thread::available_parallelism;
use std::time::Duration;

/// Test binaries per core. Tests mostly wait.
const JOBS_PER_CORE: usize = 2;

/// Default maximum of test binaries that run at the same time, because each may start Java processes of 250
/// MB each.
const MOST_JOBS: usize = 4;

/// Sizes of the samples that are drawn from seeds.
#[derive(Debug, PartialEq, Eq)]
struct Sample {
    /// Number of scripts that run on the embedded server and on a real server.
    scripts: u32,
    /// Time for simulated runs.
    simulation: Duration,
    /// Number of items in long runs of a queue, if it differs from the tests' default.
    queue_items: Option<&'static str>,
    /// Seconds of the outage that a service survives, if it differs from the test's default.
    outage: Option<&'static str>,
    /// Whether the suite of Kerberos runs, which is built into a separate folder.
    kerberos: bool,
    target: Target,
}

/// Sample before a commit.
const SMALL: Sample = Sample {
    scripts: 500,
    simulation: Duration::from_secs(60),
    queue_items: None,
    outage: None,
    kerberos: false,
    target: Target { limit: Duration::from_secs(8 * 60), without: SET_UP, with: None },
};

/// Sample in CI.
const FULL: Sample = Sample {
    scripts: 2_000,
    simulation: Duration::from_secs(4 * 60),
    queue_items: Some("10000"),
    outage: Some("40"),
    kerberos: true,
    target: Target { limit: Duration::from_secs(25 * 60), without: &[], with: Some("`cargo xtask check`") },
};

const CHANGED_TARGET: Target = Target { limit: Duration::from_secs(2 * 60), without: SET_UP, with: None };

/// Stages whose duration depends on what is already installed and built.
const SET_UP: &[&str] = &["packages", "build", "release build"];

/// Command line of the task.
#[derive(Debug, PartialEq, Eq)]
struct Arguments {
    /// Only packages that differ from the merge base, and their dependents.
    changed: bool,
    sample: Sample,
    /// Number of test binaries that run at the same time.
    jobs: usize,
    /// File for a report for CI servers.
    junit: Option<String>,
}

impl Arguments {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut parsed = Self {
            changed: false,
            sample: SMALL,
            jobs: (JOBS_PER_CORE * cores()).min(MOST_JOBS),
            junit: None,
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || {
                let value = rest.next().filter(|value| !value.starts_with("--"));
                value.with_context(|| format!("{argument} needs a value"))
            };
            match argument.as_str() {
                "--jobs" => {
                    let jobs = value()?;
                    let number = jobs.parse::<NonZero<usize>>();
                    parsed.jobs = number
                        .with_context(|| format!("--jobs {jobs} must be a number of at least 1"))?
                        .get();
                }
                "--changed" => parsed.changed = true,
                "--full" => parsed.sample = FULL,
                "--junit" => parsed.junit = Some(value()?.clone()),
                other => bail!(
                    "unknown argument {other}: usage: cargo xtask test [--full | --changed] [--jobs N] [--junit FILE]"
                ),
            }
        }
        ensure!(!parsed.changed || parsed.sample == SMALL, "--changed and --full exclude each other");
        Ok(parsed)
    }
}

/// Runs all tests, including those that need a real ZooKeeper, Prometheus, Chromium, or the third-party
/// clients Curator, kazoo, Dubbo's SDKs, Patroni and ZooKeeper's C client; with `--full`, also those that
/// need MIT Kerberos. At the end it repeats the panics of failed tests. The last line counts the passed,
/// failed and skipped tests.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let arguments = Arguments::parse(arguments)?;
    let mut report = Report::default();
    let done = match arguments.changed {
        true => run_changed(&arguments, &mut report),
        false => run_stages(&arguments, &mut report),
    };
    print!("{report}");
    let fail = |report: &mut Report, error| {
        eprintln!("error: {error:#}");
        report.fail(&error);
    };
    if let Err(error) = done {
        fail(&mut report, error);
    }
    if let Some(file) = &arguments.junit
        && let Err(error) = fs::write(file, report.junit())
    {
        fail(&mut report, anyhow!(error).context(format!("cannot write {file}")));
    }
    println!("{}", report.summary);
    if report.summary.failed > 0 { std::process::exit(1) } else { Ok(()) }
}

fn install(sample: &Sample) -> Result<()> {
    if sample.kerberos {
        packages::ensure_kerberos()?;
    }
    packages::ensure_zookeeper()?;
    packages::ensure_curator()?;
    packages::ensure_prometheus()?;
    packages::ensure_proxies()?;
    packages::ensure_chromium()?;
    packages::ensure_c_client()?;
    packages::ensure_python()?;
    packages::ensure_node()
}

/// Runs the tests of changed packages and their dependents, without tests that need other software.
fn run_changed(arguments: &Arguments, report: &mut Report) -> Result<()> {
    let affected = changed::packages()?;
    if affected.as_ref().is_some_and(BTreeSet::is_empty) {
        println!("no package has changed");
        return Ok(());
    }
    let mut stages = Stages::start();
    // Everything is built: a smaller selection has other features, and would be rebuilt.
    let Built { mut jobs, complete, .. } = stages.run("build", job::build)?;
    jobs.retain(|job| affected.as_ref().is_none_or(|affected| affected.contains(&job.package)));
    jobs.push(job::doc_tests());
    jobs.iter_mut().for_each(Job::leave_out_ignored);
    stages.run("tests", || {
        runner::run(jobs, arguments.jobs, |done| report.add(done));
        Ok(())
    })?;
    stages.finish(Some(&CHANGED_TARGET));
    complete.and(report.outcome())
}

fn run_stages(arguments: &Arguments, report: &mut Report) -> Result<()> {
    let Arguments { sample, jobs: at_once, .. } = arguments;
    let mut stages = Stages::start();
    stages.run("packages", || install(sample))?;
    let Built { mut jobs, shared_server, complete } = stages.run("build", job::build)?;
    let kerberos = match sample.kerberos {
        true => stages.run("build with Kerberos", job::build_kerberos),
        false => Ok(Vec::new()),
    };
    let released = stages.run("release build", build_released);
    let server = stages.run("shared server", || share(shared_server.as_deref(), &mut jobs))?;
    for (variable, value) in
        [("DOCENT_SOAK_ITEMS", sample.queue_items), ("DOCENT_OUTAGE_SECONDS", sample.outage)]
    {
        if let Some(value) = value {
            jobs.iter_mut().for_each(|job| job.set(variable, value));
        }
    }
    // Watches, and the mechanisms on top of them, whose behaviour differs on servers that report the
    // transaction of an event.
    let newer: Vec<_> = jobs
        .iter()
        .filter_map(|job| match () {
            () if job.is_suite("config") => Some((job, &["embedded::"][..])),
            () if job.is_suite("core") => Some((job, &["watch", "cache", "--skip", "::real::"][..])),
            () => None,
        })
        .map(|(job, filters)| job.with(filters, (EMBEDDED_AS, "3.9")))
        .collect();
    let has_newer = newer.len() == 2;
    jobs.extend(newer);
    jobs.push(job::doc_tests());
    let kerberos = kerberos.map(|built| jobs.extend(built));
    // Tests that could be built run even if others could not.
    stages.run("tests", || {
        runner::run(jobs, *at_once, |done| report.add(done));
        Ok(())
    })?;
    let served = server.map_or(Ok(()), SharedServer::stop);
    let tested = report.outcome();
    ensure!(has_newer || complete.is_err(), "the suites that run on the embedded server as 3.9 are missing");
    let compared = stages.run("differential", || differential::stage(sample.scripts));
    let simulated = stages.run("simulation", || simulate::stage(sample.simulation));
    stages.finish(Some(&sample.target));
    complete.and(kerberos).and(released).and(served).and(tested).and(compared).and(simulated)
}

/// Builds the programs that only later stages need.
fn build_released() -> Result<()> {
    differential::build()?;
    simulate::build()
}

/// Starts a real server for all jobs. A test binary without the server's address in its environment starts
/// its own.
fn share(program: Option<&Path>, jobs: &mut [Job]) -> Result<Option<SharedServer>> {
    let Some(program) = program else { return Ok(None) };
    let server = SharedServer::start(&mut Command::new(program))?;
    jobs.iter_mut().for_each(|job| job.set(shared_server::VARIABLE, &server.address));
    Ok(Some(server))
}

fn cores() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &str) -> Result<Arguments> {
        Arguments::parse(&arguments.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_options_with_values() {
        let parsed = parse("--junit report.xml --full --jobs 3").unwrap();
        assert_eq!(
            parsed,
            Arguments { changed: false, sample: FULL, jobs: 3, junit: Some("report.xml".to_owned()) }
        );
        assert_eq!(parse("").unwrap().sample, SMALL);
        assert!(parse("--changed").unwrap().changed);
        for (wrong, expected) in [
            ("--jobs 0", "--jobs 0 must be a number of at least 1"),
            ("--jobs", "--jobs needs a value"),
            ("--junit --full", "--junit needs a value"),
            ("--fast", "unknown argument --fast"),
            ("--full --changed", "--changed and --full exclude each other"),
        ] {
            let error = parse(wrong).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
