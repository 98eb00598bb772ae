//! Two clients with five recipes.

use crate::exclusive::{self, Pair};
use crate::jobs::Jobs;
use crate::settings::Settings;
use docent::client::ConnectionStatus;
use docent::discovery::{Registration, ServiceChange};
use docent::locks::MutexGuard;
use docent::{Client, ConnectionState, Instance, Leadership, Registry};
use docent_battery::{RealEnsemble, RealServer};
use docent_tests::soon;
use futures_util::StreamExt;
use futures_util::future::join_all;
use std::slice;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;

/// A session timeout longer than every fault of a test.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Time limit for an ensemble to serve again. Servers may lose their elected leader more than once, and a
/// client gives up a silent link only after a part of its timeout, so this limit is longer than in other
/// tests.
const PATIENCE: Duration = Duration::from_secs(120);

/// A session timeout shorter than the faults. Its lease is two thirds of it.
pub(crate) const SHORT: Duration = Duration::from_secs(10);

/// The tick of [`RealEnsemble::start`].
const TICK: Duration = Duration::from_millis(500);

/// Connects a client to the servers in `connect_string`.
pub(crate) async fn connect(connect_string: String, timeout: Duration) -> Client {
    let builder = Client::builder(connect_string).session_timeout(timeout).server_tick(TICK);
    soon(builder.operation_timeout(PATIENCE).connect()).await.unwrap()
}

/// Waits for `future`, at most for the time in which an ensemble must serve again.
pub(crate) async fn patiently<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("the ensemble serves again in time")
}

/// Returns which server leads, after both others follow. Servers that have just started may elect again. A
/// leader with one follower would stop leading if that follower were cut off.
pub(crate) async fn leader_of_two(ensemble: &RealEnsemble) -> usize {
    let leading = async {
        loop {
            let leader = ensemble.leader().await.unwrap();
            let modes = join_all(ensemble.servers().iter().map(RealServer::mode)).await;
            if modes.iter().flatten().filter(|mode| *mode == "follower").count() == 2 {
                return leader;
            }
            tokio::time::sleep(TICK).await;
        }
    };
    patiently(leading).await
}

/// One client holds a lock, leads, puts items, is registered and publishes. The other client waits for the
/// lock, is a candidate, takes items, views the instances and follows the published value.
pub(crate) struct Fleet {
    pub(crate) clients: [Client; 2],
    pub(crate) lock: Pair<MutexGuard>,
    pub(crate) leadership: Pair<Leadership>,
    pub(crate) jobs: Jobs,
    settings: Settings,
    registration: Registration,
    seen: Seen,
}

/// Instances that left a service, as seen by a view.
struct Seen {
    left: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Fleet {
    pub(crate) async fn start(ensemble: &RealEnsemble, timeout: Duration) -> Self {
        let all = || connect(ensemble.connect_string(), timeout);
        Self::of([all().await, all().await]).await
    }

    pub(crate) async fn of(clients: [Client; 2]) -> Self {
        let [one, other] = &clients;
        let instance = Instance::new("orders", "10.0.0.7", 8080).id("1").payload(());
        let registration = soon(registry(one).register(instance)).await.unwrap();
        Self {
            lock: exclusive::mutex(one, other).await,
            leadership: exclusive::election(one, other).await,
            jobs: Jobs::start(slice::from_ref(one), slice::from_ref(other)),
            settings: Settings::start(one, other).await,
            registration,
            seen: Seen::start(other).await,
            clients,
        }
    }

    /// Returns true if no guard is lost yet.
    pub(crate) fn holds(&self) -> bool {
        self.lock.is_held() && self.leadership.is_held()
    }

    /// Moves both clients to other servers, unless they are already connected there.
    pub(crate) fn move_to(&self, connect_string: &str) {
        for client in &self.clients {
            client.update_servers(connect_string).unwrap();
        }
    }

    /// Waits until both clients are served and the queue makes progress.
    pub(crate) async fn keeps_working(&self) {
        let working = async {
            for client in &self.clients {
                client.sync("/").await.unwrap();
            }
            self.jobs.keep_working().await;
        };
        patiently(working).await;
    }

    /// Checks, after a fault shorter than a lease, that the clients noticed only a pause.
    pub(crate) async fn has_kept_everything(self) {
        self.keeps_working().await;
        for client in &self.clients {
            assert_eq!(client.state().current().generation, 1, "a session ended");
        }
        assert!(self.holds(), "a guard was lost");
        assert_eq!(self.seen.left.lock().unwrap()[..], [""; 0], "the instance never left the view");
        self.lock.handed_over().await;
        self.leadership.handed_over().await;
        let known = finish(self.jobs, self.settings, self.registration, self.seen, self.clients).await;
        assert!(known, "a write has an unknown outcome");
    }

    /// Checks, after a fault longer than the leases, that the other client has taken over everything that was
    /// lost.
    pub(crate) async fn has_recovered(self) {
        self.lock.taken_over().await;
        self.leadership.taken_over().await;
        for client in &self.clients {
            assert!(is_connected(client).await.generation > 1, "a session outlived the fault");
        }
        finish(self.jobs, self.settings, self.registration, self.seen, self.clients).await;
    }
}

/// Waits until the client reports that it is connected. A client reports a new session later than it allows
/// its use.
pub(crate) async fn is_connected(client: &Client) -> ConnectionStatus {
    patiently(client.state().reached(ConnectionState::Connected)).await.unwrap()
}

async fn finish(
    jobs: Jobs,
    settings: Settings,
    registration: Registration,
    seen: Seen,
    clients: [Client; 2],
) -> bool {
    let known = [jobs.finish().await, settings.finish().await];
    soon(registration.announced()).await.unwrap();
    soon(clients[1].sync("/")).await.unwrap();
    let instances = soon(registry(&clients[1]).service("orders")).await.unwrap().instances();
    assert_eq!(instances.iter().map(|one| &one.id).collect::<Vec<_>>(), ["1"]);
    seen.task.abort();
    for client in clients {
        soon(client.close()).await;
    }
    known == [true; 2]
}

fn registry(client: &Client) -> Registry {
    Registry::new(client, "/services").unwrap()
}

impl Seen {
    async fn start(client: &Client) -> Self {
        soon(client.sync("/")).await.unwrap();
        let service = soon(registry(client).service("orders")).await.unwrap();
        assert_eq!(service.instances().len(), 1);
        let left = Arc::<Mutex<Vec<String>>>::default();
        let task = tokio::spawn({
            let left = Arc::clone(&left);
            async move {
                let mut changes = service.changes();
                while let Some(change) = changes.next().await {
                    if let Ok(ServiceChange::Removed(instance)) = change {
                        left.lock().unwrap().push(instance.id.clone());
                    }
                }
            }
        });
        Self { left, task }
    }
}
