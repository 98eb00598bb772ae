use crate::cli::Seat;
use crate::job::Job;
use crate::report::{Report, What};
use anyhow::{Context, bail, ensure};
use docent::{Client, Queue};
use docent_examples::{Ensemble, Process, clean_up, own_path};
use std::collections::HashSet;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

const PRODUCERS: [&str; 2] = ["paula", "peter"];
const JOBS: u32 = 10;
/// The first consumer is so slow that it is certainly still working when it is killed.
const CONSUMERS: [(&str, &str); 3] = [("anna", "600000"), ("ben", "50"), ("carla", "50")];

/// Longer than a session needs to expire.
const LONGEST_SILENCE: Duration = Duration::from_secs(60);

/// Starts producers and consumers, kills a consumer, and checks the completed work. Ctrl-C cleans up as well.
pub(crate) async fn run() -> anyhow::Result<()> {
    let ensemble = Ensemble::from_env().await?;
    println!("{}", ensemble.description());
    let client = ensemble.servers.client().connect().await?;
    let root = own_path("work-queue");
    let seat = Seat { servers: ensemble.servers.clone(), queue: format!("{root}/jobs") };
    let shown = tokio::select! {
        shown = show(&client, &seat) => shown,
        Ok(()) = tokio::signal::ctrl_c() => bail!("interrupted"),
    };
    shown?;
    for folder in ["items", "idle"] {
        clean_up(&client, &format!("{}/{folder}", seat.queue)).await?;
    }
    clean_up(&client, &seat.queue).await?;
    clean_up(&client, &root).await?;
    client.close().await;
    Ok(())
}

async fn show(client: &Client, seat: &Seat) -> anyhow::Result<()> {
    let (sender, mut reports) = mpsc::channel(64);
    let jobs = JOBS.to_string();
    let mut producers = Vec::new();
    for name in PRODUCERS {
        let arguments = seat.arguments(&["producer", "--name", name, "--jobs", &jobs]);
        producers.push(Process::start(arguments, sender.clone())?);
    }
    for producer in producers {
        producer.ended().await?;
    }
    let queue = Queue::<Job>::new(client, &seat.queue)?;
    let total = PRODUCERS.len() * JOBS as usize;
    ensure!(queue.len().await? == total, "{} jobs were put, expected {total}", queue.len().await?);
    println!("{} producers put {total} jobs and exited", PRODUCERS.len());

    let mut consumers = Vec::new();
    for (name, work_ms) in CONSUMERS {
        let arguments = seat.arguments(&["consumer", "--name", name, "--work-ms", work_ms]);
        consumers.push(Process::start(arguments, sender.clone())?);
    }
    drop(sender);
    let mut victim = Some(consumers.remove(0));
    let mut done = HashSet::new();
    let mut killed: Option<(Job, Instant)> = None;
    while done.len() < total {
        let Report { name, what, job } = next(&mut reports).await?;
        match what {
            What::Took if name == CONSUMERS[0].0 => {
                let victim = victim.take().context("the slow consumer took two jobs")?;
                println!("{name}, process {:?}, took {job}; killing it", victim.id().unwrap_or_default());
                victim.kill().await?;
                killed = Some((job, Instant::now()));
            }
            What::Took => {}
            What::Did => {
                if let Some((lost, at)) = killed.as_ref().filter(|(lost, _)| *lost == job) {
                    println!("{name} completed {lost}, {:.1} s after the kill", at.elapsed().as_secs_f64());
                }
                ensure!(done.insert(job.clone()), "{job} was done twice");
            }
        }
    }
    ensure!(killed.is_some(), "no consumer was killed");
    for consumer in consumers {
        consumer.stop().await?;
    }
    ensure!(queue.is_empty().await?, "the queue is not empty");
    ensure!(queue.dead_letters().is_empty().await?, "there are dead letters");
    println!("all {total} jobs were done exactly once, and acknowledged");
    Ok(())
}

async fn next(reports: &mut mpsc::Receiver<anyhow::Result<Report>>) -> anyhow::Result<Report> {
    let report = timeout(LONGEST_SILENCE, reports.recv()).await;
    let report = report.with_context(|| format!("no consumer did anything for {LONGEST_SILENCE:?}"))?;
    report.context("all consumers exited")?
}
