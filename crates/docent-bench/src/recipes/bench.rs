use super::plan::Options;
use super::report::Report;
use super::results::Results;
use super::stage::Stage;
use super::workload::{Role, Workload};
use super::{json, machine};
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::path::Path;
use tokio::signal::unix::{SignalKind, signal};

/// Runs the bench. All processes that it started have ended when this function returns, also after an
/// interruption.
pub(crate) async fn run(options: Options) -> Result<()> {
    let (mut interrupted, mut ended) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        done = measure(&options) => done,
        _ = interrupted.recv() => bail!("interrupted"),
        _ = ended.recv() => bail!("interrupted by a signal"),
    }
}

async fn measure(options: &Options) -> Result<()> {
    let (workloads, grown, plan) = (options.workloads()?, options.grown(), options.plan());
    options.outputs().iter().try_for_each(|path| prepare(path))?;
    let mut stage = Stage::open(plan, &[&workloads[..], &grown].concat()).await?;
    let mut results = Results::default();
    count(&mut stage, &workloads, &mut results).await?;
    for round in 0..plan.rounds {
        let measured = workloads.iter().enumerate().filter(|(_, workload)| plan.has(workload, round));
        for (number, workload) in measured {
            if round > 0 && stage.is_late() {
                results.left_out += 1;
                continue;
            }
            eprintln!("round {} of {}: {}", round + 1, plan.rounds, workload.name);
            each_side(&mut stage, workload, round, number, &mut results).await?;
        }
    }
    count(&mut stage, &grown, &mut results).await?;
    for workload in &grown {
        eprintln!("growth: {}", workload.name);
        each_side(&mut stage, workload, 0, 0, &mut results).await?;
    }
    let taken = format!("{}, {}, {}", machine::today(), stage.names().await?, machine::machine());
    stage.close().await;
    let report = Report { workloads: &workloads, grown: &grown, results: &results, plan, taken };
    println!("{report}");
    write(options, &report)?;
    if results.failures.is_empty() { Ok(()) } else { bail!("{} samples failed", results.failures.len()) }
}

/// Counts the requests and bytes of each workload. This is separate from the measured rounds, because the
/// counting proxy adds latency. It also warms up the JVMs.
async fn count(stage: &mut Stage, workloads: &[&'static Workload], results: &mut Results) -> Result<()> {
    for workload in workloads.iter().filter(|workload| !workload.is_memory()) {
        eprintln!("counting: {}", workload.name);
        for role in [Role::Subject, Role::Peer, Role::Bare] {
            match stage.counted(workload, role).await {
                Ok(Some(counted)) => results.add_counted(workload, role, counted),
                Ok(None) => {}
                Err(error) => stage.failed(workload, role, &error, results).await?,
            }
        }
    }
    Ok(())
}

/// Measures all sides of a workload, in an order that changes from round to round.
async fn each_side(
    stage: &mut Stage,
    workload: &'static Workload,
    round: u32,
    number: usize,
    results: &mut Results,
) -> Result<()> {
    // The memory of a process does not depend on the load, and is slow to measure.
    if workload.is_memory() && round > 0 {
        return Ok(());
    }
    let mut roles = Role::ALL;
    if (round as usize + number) % 2 == 1 {
        roles.reverse();
    }
    for role in roles {
        match stage.sample(workload, role, round, results).await {
            Ok(Some(sample)) => results.add(workload, role, sample),
            Ok(None) => {}
            Err(error) => stage.failed(workload, role, &error, results).await?,
        }
    }
    Ok(())
}

fn write(options: &Options, report: &Report<'_>) -> Result<()> {
    if let Some(path) = &options.markdown {
        put(path, &report.to_string())?;
    }
    if let Some(path) = &options.json {
        put(path, &json::all(report).to_string())?;
    }
    for (chart, path) in options.charts() {
        put(&path, &chart.drawn(report))?;
        println!("{}", fs::canonicalize(&path)?.display());
    }
    Ok(())
}

/// Creates the folder of an output file and checks, before any measurement, that the file can be written.
fn prepare(path: &Path) -> Result<()> {
    let open = || {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        let is_new = !path.exists();
        File::options().append(true).create(true).open(path)?;
        if is_new { fs::remove_file(path) } else { Ok(()) }
    };
    open().with_context(|| format!("cannot write {}", path.display()))
}

fn put(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_gets_a_folder_and_leaves_no_file_before_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/figures.json");
        prepare(&path).unwrap();
        assert!(path.parent().unwrap().is_dir() && !path.exists());
        put(&path, "earlier").unwrap();
        prepare(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "earlier");
        assert!(prepare(&path.join("below")).unwrap_err().to_string().starts_with("cannot write "));
    }
}
