use crate::cli::Seat;
use crate::done::Done;
use docent::{Election, ErrorKind, Leadership};
use docent_examples::until_input_ends;
use std::time::Duration;
use tokio::time::sleep;

/// Campaigns until it is asked to stop, and does the job in every term that it leads.
pub(crate) async fn run(seat: &Seat, name: &str) -> anyhow::Result<()> {
    let client = seat.servers.client().identity(name).connect().await?;
    let election = Election::builder(&client, &seat.election).id(name).build()?;
    let work = |leadership| do_the_job(seat, name, leadership);
    election.run(work).retry_failures().until(until_input_ends()).await?;
    client.close().await;
    Ok(())
}

/// Increments the number in the job's node. This future is dropped as soon as the leadership is lost.
///
/// Each write is applied only while this worker leads, because it is one transaction with a check of the
/// leadership. Even a worker that was paused until another took over writes nothing.
async fn do_the_job(seat: &Seat, name: &str, leadership: Leadership) -> anyhow::Result<()> {
    let client = seat.servers.client().connect().await?;
    loop {
        let before = client.get(&seat.job).await?;
        let number: u64 = std::str::from_utf8(&before.data)?.parse()?;
        let write = leadership.transaction().set(&seat.job, (number + 1).to_string(), before.stat.version);
        match write.commit().await {
            Ok(_) => {
                let done = Done { name: name.to_owned(), fence: leadership.fence(), number: number + 1 };
                println!("{done}");
            }
            // The write may have been applied. The next iteration reads the number again.
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {}
            // The worker resigns, and campaigns again after a pause.
            Err(error) => return Err(error.into()),
        }
        sleep(Duration::from_millis(100)).await;
    }
}
