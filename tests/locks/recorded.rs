//! A run of the mutex, recorded and held against the server's journal: contention, timeouts, cancelled
//! waiters, a client that is cut off, one whose session is ended, one whose node is deleted. The simulation
//! does the same on virtual time, and more.

use docent::client::ConnectionStatus;
use docent::locks::{AcquireError, MutexGuard};
use docent::server::Server;
use docent::{Client, ConnectionState, Mutex};
use docent_battery::{Proxy, RawClient};
use docent_checker::{
    Attempt, AttemptId, Change, ClientId, ClientRecorder, Coverage, EndState, Ending, EventKind, Facts,
    FaultKind, FencedResource, Grant, LinkState, Recorder, Role, Run, check, report,
};
use docent_proto::Request;
use docent_tests::soon;
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const PATH: &str = "/lock";
const TICK: Duration = Duration::from_millis(200);
const SESSION: Duration = Duration::from_secs(2);
const CLIENTS: u32 = 4;

/// A client of the run.
#[derive(Clone)]
struct RecordedClient {
    client: Client,
    mutex: Mutex,
    recorder: ClientRecorder,
    resource: FencedResource,
    proxy: Arc<Proxy>,
    server: Arc<Server>,
    /// Fault that happens to it when it holds next.
    fault: Arc<StdMutex<Option<FaultKind>>>,
}

impl RecordedClient {
    async fn join(number: u32, server: &Arc<Server>, recorder: &Recorder, resource: &FencedResource) -> Self {
        let proxy = Proxy::start(server.local_addr()).await.unwrap();
        let client = Client::builder(proxy.connect_string())
            .session_timeout(SESSION)
            .server_tick(TICK)
            .operation_timeout(Duration::from_secs(5))
            .connect()
            .await
            .unwrap();
        let recorder = recorder.client(ClientId { number, life: 0 });
        let mutex = Mutex::new(&client, PATH).unwrap();
        let (resource, server, fault) = (resource.clone(), Arc::clone(server), Arc::default());
        Self { client, mutex, recorder, resource, proxy: Arc::new(proxy), server, fault }
    }

    /// Takes down the states of the connection until the client is closed.
    async fn watch(self) {
        let mut watcher = self.client.state();
        let mut connection = watcher.current();
        loop {
            let ConnectionStatus { generation, suspensions, state, .. } = connection;
            let state = match state {
                ConnectionState::Connected => LinkState::Connected,
                ConnectionState::Suspended => LinkState::Suspended,
                ConnectionState::Lost => LinkState::Lost,
                ConnectionState::Closed => LinkState::Closed,
                _ => LinkState::Connecting,
            };
            // Between two generations the client has the session of the next one already, or none.
            let session = self.client.session_id().filter(|_| state == LinkState::Connected);
            self.recorder.write(EventKind::Connection { state, generation, suspensions, session });
            match watcher.changed().await {
                Some(changed) if state != LinkState::Closed => connection = changed,
                _ => return,
            }
        }
    }

    async fn run(self, stop: CancellationToken) {
        for round in 0_u32.. {
            if stop.is_cancelled() {
                return;
            }
            let patience = (round % 3 == 1).then_some(Duration::from_millis(60));
            let id = self.recorder.attempt();
            let attempt = Attempt { id, path: PATH.to_owned(), role: Role::Exclusive, patience };
            self.recorder.write(EventKind::Began(attempt));
            let ending = match self.acquire(patience, round % 5 == 4).await {
                Some(Ok(guard)) => {
                    self.hold(id, guard).await;
                    continue;
                }
                Some(Err(AcquireError::TimedOut(_))) => Ending::TimedOut,
                Some(Err(AcquireError::Busy(_))) => Ending::Busy,
                Some(Err(error)) => Ending::Failed(format!("{error:?}")),
                None => Ending::Cancelled,
            };
            self.recorder.write(EventKind::Ended(id, ending));
        }
    }

    /// `None` when the future was dropped before it was done.
    async fn acquire(
        &self,
        patience: Option<Duration>,
        cancel: bool,
    ) -> Option<Result<MutexGuard, AcquireError>> {
        match patience {
            Some(patience) => Some(self.mutex.acquire_timeout(patience).await),
            None if cancel => {
                tokio::time::timeout(Duration::from_millis(15), self.mutex.acquire()).await.ok()
            }
            None => Some(self.mutex.acquire().await),
        }
    }

    async fn hold(&self, id: AttemptId, guard: MutexGuard) {
        let generation = self.client.state().current().generation;
        let session = self.client.session_id().unwrap_or_default();
        let fence = guard.fence().as_u64();
        self.recorder.write(EventKind::Granted(
            id,
            Grant { node: guard.path(), session, generation, fence: Some(fence), turn: None },
        ));
        let fault = self.fault.lock().unwrap().take();
        if let Some(fault) = fault {
            self.suffer(id, &guard, fault).await;
        }
        let work = async {
            for _ in 0..3 {
                if !self.look(id, &guard) {
                    return;
                }
                self.recorder.write(EventKind::Used(id, self.resource.use_with(PATH, fence)));
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            biased;
            _ = guard.lost(), if fault.is_none() => self.recorder.write(EventKind::Lost(id)),
            () = work => {}
        }
        self.look(id, &guard);
        if fence.is_multiple_of(2) {
            self.recorder.write(EventKind::Dropped(id));
            drop(guard);
        } else {
            self.recorder.write(EventKind::Releasing(id));
            let ok = guard.release().await.is_ok();
            self.recorder.write(EventKind::Released { attempt: id, ok });
        }
    }

    /// Takes its hold away by `fault`.
    async fn suffer(&self, id: AttemptId, guard: &MutexGuard, fault: FaultKind) {
        self.recorder.write(EventKind::Fault(fault));
        match fault {
            FaultKind::Cut => self.proxy.blackhole(),
            FaultKind::Expired => assert!(self.server.expire(self.client.session_id().unwrap())),
            _ => {
                let mut outsider = RawClient::open(self.server.connect_string(), SESSION).await.unwrap();
                outsider.call(Request::Delete { path: guard.path(), version: -1 }).await.unwrap();
            }
        }
        soon(guard.lost()).await;
        self.recorder.write(EventKind::Lost(id));
        if fault == FaultKind::Cut {
            // A lost guard is kept until the server has ended the session, too.
            tokio::time::sleep(SESSION).await;
            self.look(id, guard);
            self.proxy.heal().await.unwrap();
            self.proxy.reset().await;
            self.recorder.write(EventKind::Healed(fault));
        }
    }

    fn look(&self, attempt: AttemptId, guard: &MutexGuard) -> bool {
        let held = guard.is_held();
        self.recorder.write(EventKind::Looked { attempt, held, cancelled: guard.token().is_cancelled() });
        held
    }
}

/// Deals faults while the clients run: each when its client holds.
async fn trouble(clients: &[RecordedClient]) {
    let faults = [FaultKind::Cut, FaultKind::Expired, FaultKind::Deleted];
    for (client, fault) in clients.iter().zip(faults) {
        tokio::time::sleep(Duration::from_millis(300)).await;
        *client.fault.lock().unwrap() = Some(fault);
        while client.fault.lock().unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    // The one that is cut off comes back.
    tokio::time::sleep(SESSION * 2).await;
}

fn end_state(server: &Server, at: Duration) -> EndState {
    let mut end = EndState::new(at);
    end.nodes = server.nodes();
    end.watches = server.watch_count();
    let watches = |id| server.session(id).map_or(0, |session| session.watches);
    end.sessions = server.sessions().into_iter().map(|id| (id, watches(id))).collect();
    end
}

#[tokio::test]
async fn a_recorded_run_of_a_mutex_breaks_nothing() {
    let start = Instant::now();
    let recorder = Recorder::new(move || start.elapsed());
    let builder = Server::builder().tick(TICK).session_timeouts(TICK * 2, SESSION).journal(true);
    let server = Arc::new(builder.clock(move || start.elapsed()).start().await.unwrap());
    let resource = FencedResource::new();
    let (mut clients, mut watchers, mut runs) = (Vec::new(), JoinSet::new(), JoinSet::new());
    let stop = CancellationToken::new();
    for number in 0..CLIENTS {
        let client = RecordedClient::join(number, &server, &recorder, &resource).await;
        watchers.spawn(client.clone().watch());
        runs.spawn(client.clone().run(stop.clone()));
        clients.push(client);
    }
    soon(trouble(&clients)).await;
    recorder.world(EventKind::Calm);
    tokio::time::sleep(Duration::from_millis(500)).await;
    stop.cancel();
    soon(runs.join_all()).await;
    // Nodes that were given up last are deleted in the background.
    let idle = async {
        while !server.nodes().iter().all(|path| !path.starts_with("/lock/")) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon(idle).await;
    let end = end_state(&server, start.elapsed());
    for client in clients {
        client.recorder.write(EventKind::Closing);
        soon(client.client.close()).await;
        client.recorder.write(EventKind::Closed);
    }
    soon(watchers.join_all()).await;

    let journal = server.journal();
    let mut facts = Facts::new(TICK, SESSION).timeouts_of(&journal);
    facts.end = end;
    facts.tolerances.grain = Duration::from_millis(20);
    facts.tolerances.scheduling = Duration::from_millis(500);
    facts.tolerances.round_trip = Duration::from_millis(200);
    let run = Run { events: recorder.events(), journal: Change::of(&journal, 0), facts };
    let violations = check(&run);
    let reports: Vec<String> = violations.iter().take(3).map(|found| report(&run, found, 40)).collect();
    assert!(violations.is_empty(), "{} violations\n{}", violations.len(), reports.join("\n"));
    let coverage = Coverage::of(&run);
    let least = Coverage {
        grants: 50,
        contended: 30,
        refused: 3,
        cancelled: 3,
        uses: 100,
        losses: 3,
        expiries: 1,
        taken: 2,
        faults: 3,
        granted_in_calm: 5,
        ..Coverage::default()
    };
    assert_eq!(coverage.missing(&least), [""; 0], "{coverage}");
}
