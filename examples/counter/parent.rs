use crate::cli::{Job, Role};
use crate::ledger::Ledger;
use crate::line::Line;
use crate::tally::Tally;
use anyhow::{Context, bail, ensure};
use docent::Mutex;
use docent_examples::{Ensemble, Process, clean_up, own_path};
use std::time::Duration;
use tempfile::NamedTempFile;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

/// Longer than a session needs to expire.
const LONGEST_SILENCE: Duration = Duration::from_secs(60);

/// Starts the processes, kills the victim, and checks the number at the end. Ctrl-C cleans up as well.
pub(crate) async fn run(processes: u32, increments: u32) -> anyhow::Result<()> {
    let ensemble = Ensemble::from_env().await?;
    println!("{}", ensemble.description());
    let client = ensemble.servers.client().connect().await?;
    let file = NamedTempFile::with_prefix("docent-counter-")?;
    Ledger::start(file.path())?;
    let root = own_path("counter");
    let (lock, file_path) = (format!("{root}/lock"), file.path().to_owned());
    let job = Job { servers: ensemble.servers.clone(), lock, file: file_path };

    tokio::select! {
        counted = count(&job, processes, increments) => counted?,
        Ok(()) = tokio::signal::ctrl_c() => bail!("interrupted"),
    }
    let expiry = ensemble.servers.session_timeout + ensemble.servers.tick * 2;
    check_line_is_empty(&Mutex::new(&client, &job.lock)?, expiry).await?;
    clean_up(&client, &root).await?;
    client.close().await;
    Ok(())
}

async fn count(job: &Job, processes: u32, increments: u32) -> anyhow::Result<()> {
    let start = Instant::now();
    let (sender, lines) = mpsc::channel(64);
    let worker = Role::Worker { job: job.clone(), increments };
    let start_worker = |_| Process::start(worker.arguments(), sender.clone());
    let workers = (0..processes).map(start_worker).collect::<Result<Vec<_>, _>>()?;
    let victim = Process::start(Role::Victim { job: job.clone() }.arguments(), sender.clone())?;
    drop(sender);
    println!("{processes} processes with {increments} increments each, and one process that is killed");

    let tally = follow(lines, victim).await?;
    for worker in workers {
        worker.ended().await?;
    }
    let number = Ledger::read(&job.file)?.number;
    println!("{tally}; the file contains {number}; {:.1} s", start.elapsed().as_secs_f64());
    tally.check(u64::from(processes) * u64::from(increments), number)
}

/// Records what the processes report until all have ended, and kills the victim when it holds the lock.
async fn follow(mut lines: mpsc::Receiver<anyhow::Result<Line>>, victim: Process) -> anyhow::Result<Tally> {
    let (mut tally, mut victim) = (Tally::default(), Some(victim));
    loop {
        let line = timeout(LONGEST_SILENCE, lines.recv()).await;
        match line.with_context(|| format!("no process printed anything for {LONGEST_SILENCE:?}"))? {
            Some(Ok(Line::Holding(fence))) => {
                let victim = victim.take().context("the victim held the lock twice")?;
                let id = victim.id().context("the victim exited before it was killed")?;
                victim.kill().await?;
                println!("process {id} holds the lock with fence {fence}; killing it before it writes");
                tally.killed(fence);
            }
            Some(Ok(Line::Done(fence))) => {
                if tally.done(fence)? {
                    println!(
                        "the session of the killed process has expired; the other processes continue, fence {fence}"
                    );
                }
            }
            Some(Err(error)) => return Err(error),
            None => return Ok(tally),
        }
    }
}

/// Waits until the line is empty. The victim may still be in it, if no other process came after it.
async fn check_line_is_empty(mutex: &Mutex, expiry: Duration) -> anyhow::Result<()> {
    let start = Instant::now();
    loop {
        let remaining = mutex.participants().await?.len();
        if remaining == 0 {
            return Ok(());
        }
        ensure!(start.elapsed() < expiry, "{remaining} nodes were left in the line of {}", mutex.path());
        sleep(Duration::from_millis(50)).await;
    }
}
