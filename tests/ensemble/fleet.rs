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

/// A timeout that outlives everything which a test does to the servers.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Servers that lost their leader elect, perhaps twice, and a silent link is given up after a part of a
/// timeout: longer than other tests wait for anything.
const PATIENCE: Duration = Duration::from_secs(120);

/// A timeout that does not: the lease is two thirds of it.
pub(crate) const SHORT: Duration = Duration::from_secs(10);

/// The tick of [`RealEnsemble::start`].
const TICK: Duration = Duration::from_millis(500);

/// A client of the servers in `connect_string`.
pub(crate) async fn connect(connect_string: String, timeout: Duration) -> Client {
    let builder = Client::builder(connect_string).session_timeout(timeout).server_tick(TICK);
    soon(builder.operation_timeout(PATIENCE).connect()).await.unwrap()
}

/// Waits for `future` as long as an ensemble may take to serve again.
pub(crate) async fn patiently<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("the ensemble serves again well before")
}

/// Which server leads, once both others follow. After servers have started they may elect again; with one
/// follower only, a leader that this one is cut off from leads no more.
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

/// One client holds a lock, leads, puts items, is registered and publishes; the other waits for the lock,
/// stands for the leadership, takes items, sees the registered instances and follows the published value.
pub(crate) struct Fleet {
    pub(crate) clients: [Client; 2],
    pub(crate) lock: Pair<MutexGuard>,
    pub(crate) leadership: Pair<Leadership>,
    pub(crate) jobs: Jobs,
    settings: Settings,
    registration: Registration,
    seen: Seen,
}

/// Instances that left a service, as a view saw it.
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

    /// Nothing is lost yet.
    pub(crate) fn holds(&self) -> bool {
        self.lock.is_held() && self.leadership.is_held()
    }

    /// Moves both clients to other servers, if they are not there.
    pub(crate) fn move_to(&self, connect_string: &str) {
        for client in &self.clients {
            client.update_servers(connect_string).unwrap();
        }
    }

    /// Waits until both clients are served, and the queue goes on.
    pub(crate) async fn goes_on(&self) {
        let going_on = async {
            for client in &self.clients {
                client.sync("/").await.unwrap();
            }
            self.jobs.go_on().await;
        };
        patiently(going_on).await;
    }

    /// After a fault that was over before a lease: nobody has noticed more than a pause.
    pub(crate) async fn has_kept_everything(self) {
        self.goes_on().await;
        for client in &self.clients {
            assert_eq!(client.state().current().generation, 1, "a session ended");
        }
        assert!(self.holds(), "a guard was lost");
        assert_eq!(self.seen.left.lock().unwrap()[..], [""; 0], "an instance that was there all the time");
        self.lock.handed_over().await;
        self.leadership.handed_over().await;
        let known = finish(self.jobs, self.settings, self.registration, self.seen, self.clients).await;
        assert!(known, "a write has an unknown outcome");
    }

    /// After a fault that outlasted leases: the other client has everything that was lost.
    pub(crate) async fn has_recovered(self) {
        self.lock.taken_over().await;
        self.leadership.taken_over().await;
        for client in &self.clients {
            assert!(is_connected(client).await.generation > 1, "a session outlived the fault");
        }
        finish(self.jobs, self.settings, self.registration, self.seen, self.clients).await;
    }
}

/// Waits until the client tells that it is connected: of a new session it does so later than it lets others
/// use it.
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
    let instances = soon(registry(&clients[1]).service::<()>("orders")).await.unwrap().instances();
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
        let service = soon(registry(client).service::<()>("orders")).await.unwrap();
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
