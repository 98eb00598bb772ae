use crate::server::Process;
use anyhow::Result;
use bytes::Bytes;
use docent::discovery::ServiceType;
use docent::queue::Raw;
use docent::{Client, CreateMode, Instance, Queue, Registry};
use futures_util::future::try_join_all;

/// Number of nodes created in one transaction, or by requests at the same time.
const BATCH: usize = 250;

/// Number of contenders of one session: a session may own 512 KiB of paths.
const PER_SESSION: usize = 5_000;

/// Number of contenders of each lock of [`contenders`].
pub(super) const PER_LOCK: usize = 100;

/// Creates contenders in locks of 100. Returns the clients whose sessions own them.
pub(super) async fn contenders(server: &Process, count: usize) -> Result<Vec<Client>> {
    create(server, count, |number| (lock(number / PER_LOCK), number % PER_LOCK)).await
}

/// Creates locks with one holder. Returns the clients whose sessions own them.
pub(super) async fn locks(server: &Process, count: usize) -> Result<Vec<Client>> {
    create(server, count, |number| (format!("/single/n{number:05}"), 0)).await
}

/// Creates contenders, each in the lock and at the place that `place` returns for its number. The first one
/// of a lock creates the lock.
async fn create(
    server: &Process,
    count: usize,
    place: impl Fn(usize) -> (String, usize),
) -> Result<Vec<Client>> {
    let mut clients = Vec::new();
    for first in (0..count).step_by(PER_SESSION) {
        let client = Client::connect(server.address().to_string()).await?;
        for first in (first..count.min(first + PER_SESSION)).step_by(BATCH) {
            let mut transaction = client.transaction();
            for number in first..count.min(first + BATCH) {
                let (path, nth) = place(number);
                if nth == 0 {
                    transaction = transaction.create(&path, "", CreateMode::Persistent);
                }
                transaction = transaction.create(&contender(&path, nth), "10.0.0.7", CreateMode::Ephemeral);
            }
            transaction.commit().await?;
        }
        clients.push(client);
    }
    Ok(clients)
}

/// Registers static instances of services of 100, which belong to no session.
pub(super) async fn instances(client: &Client, count: usize) -> Result<()> {
    let registry = Registry::new(client, "/services")?;
    for first in (0..count).step_by(BATCH) {
        let register = |number: usize| {
            let instance = Instance::new(format!("service-{:03}", number / 100), "10.0.0.7", 8080);
            let instance = instance.id(format!("i{number:05}")).payload("zone-a");
            registry.register(instance.service_type(ServiceType::Static))
        };
        drop(try_join_all((first..count.min(first + BATCH)).map(register)).await?);
    }
    Ok(())
}

/// Puts items into one queue.
pub(super) async fn items(client: &Client, count: usize) -> Result<()> {
    let queue = Queue::<Bytes>::builder_with(client, "/jobs", Raw).unbounded().build()?;
    for first in (0..count).step_by(BATCH) {
        let items: Vec<_> =
            (first..count.min(first + BATCH)).map(|number| Bytes::from(format!("job {number}"))).collect();
        queue.put_all(&items).await?;
    }
    Ok(())
}

/// Returns the path of a lock of [`contenders`].
pub(super) fn lock(number: usize) -> String {
    format!("/locks/n{number:05}")
}

/// Returns the node of a contender, which is the nth in its line.
pub(super) fn contender(lock: &str, nth: usize) -> String {
    format!("{lock}/_c_{:032x}-lock-{nth:010}", 0)
}
