use anyhow::Result;
use docent::Client;
use docent::discovery::{Instance, Registration, Registry};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::collections::HashMap;
use std::time::Duration;

/// Name of each service.
pub(super) const SERVICE: &str = "service";

/// Instances of one session. Servers limit the number of ephemeral nodes that a session may own.
const PER_SESSION: usize = 4_000;
const IN_FLIGHT: usize = 64;
const SESSION_TIMEOUT: Duration = Duration::from_secs(30);

/// Services whose instances exist as long as the bench runs, in the layout that all libraries read. All sides
/// use the same service of each size.
///
/// # On drop
///
/// The instances are deregistered, because their sessions end.
#[derive(Debug, Default)]
pub(super) struct Populated {
    folders: HashMap<usize, String>,
    registered: Vec<(Client, Vec<Registration>)>,
}

/// Returns an instance with this payload.
pub(super) fn instance(payload: &str) -> Instance<String> {
    Instance::new(SERVICE, "10.0.0.7", 8080).payload(payload.to_owned())
}

impl Populated {
    /// Returns the folder of a service with this number of instances, and creates it on first use.
    ///
    /// # Errors
    ///
    /// Fails if an instance cannot be registered.
    pub(super) async fn folder(&mut self, server: &str, instances: usize) -> Result<String> {
        if let Some(folder) = self.folders.get(&instances) {
            return Ok(folder.clone());
        }
        let folder = format!("/bench/services-{instances}");
        let mut remaining = instances;
        while remaining > 0 {
            let count = remaining.min(PER_SESSION);
            self.registered.push(register(server, &folder, count).await?);
            remaining -= count;
        }
        self.folders.insert(instances, folder.clone());
        Ok(folder)
    }

    /// Closes the sessions, which deregisters the instances.
    pub(super) async fn close(self) {
        for (client, _) in self.registered {
            client.close().await;
        }
    }
}

async fn register(server: &str, folder: &str, count: usize) -> Result<(Client, Vec<Registration>)> {
    let client = Client::builder(server).session_timeout(SESSION_TIMEOUT).connect().await?;
    let registry = Registry::new(&client, folder)?;
    let registered = stream::iter(0..count).map(|_| registry.register(instance("standing")));
    let registered = registered.buffer_unordered(IN_FLIGHT).try_collect().await?;
    Ok((client, registered))
}
