use crate::cli::Seat;
use crate::job::Job;
use crate::report::{Report, What};
use docent::Queue;
use docent::queue::AckError;
use docent_examples::until_input_ends;
use futures_util::TryStreamExt;
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

/// Works on jobs until it is asked to stop. The job in work then goes back to its place.
pub(crate) async fn consume(seat: &Seat, name: &str, work_ms: u64) -> anyhow::Result<()> {
    let client = seat.servers.client().identity(name).connect().await?;
    let queue = Queue::<Job>::new(&client, &seat.queue)?;
    tokio::select! {
        worked = work(&queue, name, Duration::from_millis(work_ms)) => worked?,
        () = until_input_ends() => {}
    }
    client.close().await;
    Ok(())
}

async fn work(queue: &Queue<Job>, name: &str, duration: Duration) -> anyhow::Result<()> {
    let mut deliveries = queue.deliveries();
    while let Some(delivery) = deliveries.try_next().await? {
        let report = |what| Report::new(name, what, &delivery);
        let (taken, done) = (report(What::Took), report(What::Did));
        taken.print()?;
        // Work that is not idempotent must continue only while no other consumer can have the job.
        if delivery.run(sleep(duration)).await.is_err() {
            continue;
        }
        match delivery.ack().await {
            Ok(()) => done.print()?,
            // Another consumer gets the job.
            Err(AckError::Lost(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
