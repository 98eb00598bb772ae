use crate::cli::Job;
use crate::leash::end_with_the_parent;
use crate::ledger::Ledger;
use crate::line::Line;
use docent::Mutex;
use std::future::pending;

/// Acquires the lock, says so, and is killed before it writes.
pub(crate) async fn run(job: &Job) -> anyhow::Result<()> {
    end_with_the_parent(&job.file);
    let client = job.servers.client().connect().await?;
    let guard = Mutex::new(&client, &job.lock)?.acquire().await?;
    let number = Ledger::read(&job.file)?.number;
    println!("{}", Line::Holding(guard.fence()));
    pending::<()>().await;
    Ledger::replace(&job.file, number + 1, guard.fence())?;
    Ok(())
}
