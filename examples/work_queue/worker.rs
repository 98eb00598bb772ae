use crate::cli::Seat;
use crate::job::Job;
use crate::report::{Report, What};
use docent::Queue;
use docent_examples::until_input_ends;
use std::time::Duration;
use tokio::time::sleep;

/// Puts the producer's jobs.
pub(crate) async fn produce(seat: &Seat, name: &str, jobs: u32) -> anyhow::Result<()> {
    let client = seat.servers.client().identity(name).connect().await?;
    let queue = Queue::<Job>::new(&client, &seat.queue)?;
    for number in 1..=jobs {
        queue.put(&Job { producer: name.to_owned(), number }).await?;
    }
    client.close().await;
    Ok(())
}

/// Works on jobs until it is asked to stop. The job in work is then finished and acknowledged.
pub(crate) async fn consume(seat: &Seat, name: &str, work_ms: u64) -> anyhow::Result<()> {
    let client = seat.servers.client().identity(name).connect().await?;
    let queue = Queue::<Job>::new(&client, &seat.queue)?;
    // The work is dropped as soon as another consumer can have the job. If it returns an error, the job is
    // repeated.
    let work = async |job: &Job| {
        Report::new(name, What::Took, job).print()?;
        sleep(Duration::from_millis(work_ms)).await;
        Report::new(name, What::Did, job).print()
    };
    queue.consume(work).until(until_input_ends()).await?;
    client.close().await;
    Ok(())
}
