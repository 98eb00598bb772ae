use crate::stage::Stage;
use anyhow::{Context, ensure};
use docent::{Delivery, Error, Queue};
use std::time::Duration;

const JOBS: u32 = 3;

/// Jobs in a queue: the job of a consumer that crashes goes to another one, and an acknowledged job is done
/// once.
pub(crate) async fn show(stage: &Stage) -> anyhow::Result<()> {
    stage.headline("A queue: a crashed consumer's job goes to another consumer, and is done once");
    let (producer, crashing, steady) =
        (stage.client("producer").await?, stage.client("crashing").await?, stage.client("steady").await?);
    let path = format!("{}/jobs", stage.root());
    let jobs = Queue::<u32>::new(&producer, &path)?;
    jobs.put_all(&(1..=JOBS).collect::<Vec<_>>()).await?;
    stage.print("producer", format_args!("put {JOBS} jobs in one step"));

    let lost = taken(Queue::new(&crashing, &path)?.try_take().await)?;
    stage.print("crashing", format_args!("took job {} with the claim {}", lost.item(), lost.path()));
    let second = taken(Queue::new(&steady, &path)?.try_take().await)?;
    ensure!(*second.item() == 2, "two consumers have job {}", second.item());
    stage.print("steady", "took job 2, because the first is claimed");
    // Same effect as the end of the process: the session ends, and the claim is deleted with it.
    crashing.close().await;
    ensure!(!lost.is_held(), "a closed client still holds a job");
    second.ack().await?;

    // A consumer at work would notice within half a second that the first job is back.
    let steadily = Queue::<u32>::new(&steady, &path)?;
    for expected in [1, 3] {
        let delivery = steadily.take_timeout(Duration::from_secs(5)).await?.context("a job was lost")?;
        ensure!(*delivery.item() == expected, "job {} came before {expected}", delivery.item());
        let count = delivery.deliveries().unwrap_or_default();
        stage.print("steady", format_args!("does job {expected}, delivery number {count}"));
        delivery.ack().await?;
    }
    ensure!(jobs.is_empty().await?, "the queue is not empty");
    stage.print("producer", "the queue is empty");
    for folder in ["items", "idle"] {
        crate::clean_up(&producer, &format!("{path}/{folder}")).await?;
    }
    producer.close().await;
    steady.close().await;
    Ok(())
}

fn taken(taken: Result<Option<Delivery<u32>>, Error>) -> anyhow::Result<Delivery<u32>> {
    taken?.context("there is no job")
}
