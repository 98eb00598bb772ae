use crate::cli::Seat;
use crate::done::Done;
use anyhow::{Context, bail, ensure};
use docent::{Client, CreateMode, Election, Fence};
use docent_examples::{Ensemble, Process, clean_up, own_path};
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

const NAMES: [&str; 2] = ["anna", "ben"];

/// Number of pieces that a leader does before it is killed, and the next leader before it is asked to stop.
const PIECES: u64 = 5;

/// Longer than a session needs to expire.
const LONGEST_SILENCE: Duration = Duration::from_secs(60);

/// Starts two workers, kills the leader, and checks the work of both. Ctrl-C cleans up as well.
pub(crate) async fn run() -> anyhow::Result<()> {
    let ensemble = Ensemble::from_env().await?;
    println!("{}", ensemble.description());
    let client = ensemble.servers.client().connect().await?;
    let root = own_path("leader-worker");
    let (election, job) = (format!("{root}/election"), format!("{root}/job"));
    let seat = Seat { servers: ensemble.servers.clone(), election, job };
    client.create(&seat.job, "0", CreateMode::Persistent).await?;

    let election = Election::new(&client, &seat.election)?;
    let shown = tokio::select! {
        shown = show(&client, &seat, &election) => shown,
        Ok(()) = tokio::signal::ctrl_c() => bail!("interrupted"),
    };
    shown?;
    clean_up(&client, &root).await?;
    client.close().await;
    Ok(())
}

async fn show(client: &Client, seat: &Seat, election: &Election) -> anyhow::Result<()> {
    let (sender, mut done) = mpsc::channel(64);
    let mut workers = HashMap::new();
    for name in NAMES {
        workers.insert(name.to_owned(), Process::start(seat.worker(name), sender.clone())?);
    }
    drop(sender);
    until_candidates(election, NAMES.len()).await?;

    let first = pieces(&mut done, None).await?;
    let victim = workers.remove(&first.name).context("a stranger leads")?;
    let id = victim.id().context("the leader exited before it was killed")?;
    victim.kill().await?;
    let killed = Instant::now();
    println!("process {id}, {}, leads with fence {}; killing it", first.name, first.fence);

    let second = pieces(&mut done, Some(first.fence)).await?;
    println!(
        "{} took over with fence {} and did {PIECES} pieces, {:.1} s after the kill",
        second.name,
        second.fence,
        killed.elapsed().as_secs_f64()
    );
    ensure!(second.name != first.name, "the worker that was killed took over");
    workers.remove(&second.name).context("a stranger leads")?.stop().await?;
    ensure!(election.leader().await?.is_none(), "a worker that has stopped still leads");
    let number = client.get(&seat.job).await?.data;
    println!(
        "{} was asked to stop and resigned; {} pieces are done",
        second.name,
        String::from_utf8_lossy(&number)
    );
    Ok(())
}

/// Follows the job until the leader after `before` has done some pieces. Each piece must be done by the
/// leader of that time.
async fn pieces(
    done: &mut mpsc::Receiver<anyhow::Result<Done>>,
    before: Option<Fence>,
) -> anyhow::Result<Done> {
    let (mut leader, mut count): (Option<Done>, u64) = (None, 0);
    loop {
        let line = timeout(LONGEST_SILENCE, done.recv()).await;
        let line = line.with_context(|| format!("no worker did anything for {LONGEST_SILENCE:?}"))?;
        let piece = line.context("all workers exited")??;
        if Some(piece.fence) == before {
            // The worker reported this before it was killed.
            ensure!(leader.is_none(), "{} worked after its term", piece.name);
            continue;
        }
        ensure!(before < Some(piece.fence), "{} leads with an old fence", piece.name);
        if let Some(leader) = &leader {
            ensure!(leader.fence == piece.fence, "{} and {} work at the same time", leader.name, piece.name);
        }
        count += 1;
        if count == PIECES {
            return Ok(piece);
        }
        leader = Some(piece);
    }
}

async fn until_candidates(election: &Election, count: usize) -> anyhow::Result<()> {
    let start = Instant::now();
    while election.candidates().await?.len() < count {
        ensure!(start.elapsed() < LONGEST_SILENCE, "expected {count} candidates");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let names: Vec<_> = election.candidates().await?.into_iter().map(|one| one.identity).collect();
    let names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
    println!("candidates: {}", names.join(", "));
    Ok(())
}
