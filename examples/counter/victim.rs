use crate::cli::Job;
use crate::ledger::Ledger;
use crate::line::Line;
use crate::parent_exit::exit_with_parent;
use docent::Mutex;
use std::future::pending;

/// Acquires the lock, reports that, and is killed before it writes.
pub(crate) async fn run(job: &Job) -> anyhow::Result<()> {
    exit_with_parent(&job.file);
    let client = job.servers.client().connect().await?;
    let guard = Mutex::new(&client, &job.lock)?.acquire().await?;
    let number = Ledger::read(&job.file)?.number;
    println!("{}", Line::Holding(guard.fence()));
    pending::<()>().await;
    Ledger::replace(&job.file, number + 1, guard.fence())?;
    Ok(())
}
