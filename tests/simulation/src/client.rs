use crate::clock::ProcessClock;
use crate::controls::Controls;
use crate::server;
use crate::setting::Setting;
use crate::transport::SimulatedTransport;
use crate::workload::{ClientCtx, Denied, Workload};
use docent::client::ClientBuilder;
use docent::node::Acl;
use docent::{Client, ConnectionState};
use docent_checker::{ClientId, ClientRecorder, EventKind, LinkState, Recorder};
use fastrand::Rng;
use futures_util::StreamExt;
use futures_util::future::join;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use turmoil::Sim;

/// A client's host, as the step loop sees it.
#[derive(Debug)]
pub(crate) struct ClientHost {
    /// Name of the host in the simulated network.
    pub(crate) name: String,
    pub(crate) controls: Controls,
    number: u32,
    /// Number of processes that were started on the host before the current one.
    life: Rc<Cell<u32>>,
}

/// Settings and handles that all client hosts are started with.
#[derive(Debug, Clone)]
pub(crate) struct Common {
    pub(crate) setting: Setting,
    pub(crate) recorder: Recorder,
    pub(crate) workload: Rc<dyn Workload>,
    /// Cancelled when the tree has been laid out for its tenants.
    pub(crate) laid_out: CancellationToken,
    /// Cancelled when nothing new may begin.
    pub(crate) stop: CancellationToken,
    pub(crate) denied: Denied,
}

impl ClientHost {
    /// Creates a host whose process is not a client of the workload.
    pub(crate) fn new(name: String, number: u32) -> Self {
        Self { name, controls: Controls::default(), number, life: Rc::default() }
    }

    /// Adds a client's host to the network.
    pub(crate) fn add(sim: &mut Sim<'_>, number: u32, common: &Common, rng: &mut Rng) -> Self {
        let name = format!("client-{number}");
        let (controls, life) = (Controls::default(), Rc::new(Cell::new(0)));
        let process = Process {
            number,
            name: name.clone(),
            controls: controls.clone(),
            life: Rc::clone(&life),
            common: common.clone(),
            seed: rng.u64(..),
        };
        sim.host(name.as_str(), move || {
            let process = process.clone();
            async move {
                let controls = process.controls.clone();
                controls.gate(process.run()).await
            }
        });
        Self { name, controls, number, life }
    }

    /// Id of the current process.
    pub(crate) fn id(&self) -> ClientId {
        ClientId { number: self.number, life: self.life.get() }
    }

    /// Notes that the process has died. The next process has another id.
    pub(crate) fn died(&self) {
        self.life.set(self.life.get() + 1);
        self.controls.reborn();
    }
}

/// Process of a client's host. It runs one client after the other until it must stop.
#[derive(Debug, Clone)]
struct Process {
    number: u32,
    name: String,
    controls: Controls,
    life: Rc<Cell<u32>>,
    common: Common,
    seed: u64,
}

impl Process {
    async fn run(self) -> turmoil::Result {
        if self.common.setting.tenants {
            self.common.laid_out.cancelled().await;
        }
        loop {
            let id = ClientId { number: self.number, life: self.life.get() };
            let mut rng = Rng::with_seed(self.seed.wrapping_add(u64::from(id.life)));
            self.live(self.common.recorder.client(id), &mut rng).await?;
            if self.common.stop.is_cancelled() {
                return Ok(());
            }
            self.life.set(id.life + 1);
        }
    }

    /// Runs one client from its start to its close.
    async fn live(&self, recorder: ClientRecorder, rng: &mut Rng) -> turmoil::Result {
        recorder.write(EventKind::Started);
        let client =
            builder(&self.common.setting, &self.name, &self.controls, Some(recorder.clone())).build()?;
        let watching =
            tokio::task::spawn_local(watch(client.clone(), recorder.clone(), self.controls.clone()));
        let ctx = ClientCtx {
            client: client.clone(),
            recorder: recorder.clone(),
            setting: self.common.setting.clone(),
            controls: self.controls.clone(),
            stop: self.common.stop.clone(),
            denied: self.common.denied.clone(),
        };
        self.spend(ctx, rng).await;
        Ok(watching.await?)
    }

    /// Runs the client's work and closes the client, possibly before the work ends.
    async fn spend(&self, ctx: ClientCtx, rng: &mut Rng) {
        let (client, recorder) = (ctx.client.clone(), ctx.recorder.clone());
        let end = End::draw(&self.common.setting, rng);
        let end = if self.common.workload.lasts() { End::Done } else { end };
        let mut work = self.common.workload.run(ctx, rng);
        let left = match end {
            End::Done => {
                work.await;
                None
            }
            End::Dropped(after) => {
                let _ = timeout(after, work).await;
                None
            }
            End::Closed(after) | End::ShutDown(after, _) => {
                timeout(after, &mut work).await.is_err().then_some(work)
            }
        };
        recorder.write(EventKind::Closing);
        let close = async {
            let End::ShutDown(_, within) = end else { return client.close().await };
            let report = client.shutdown(within).await;
            let left = report.left.into_iter().map(|node| node.path).collect();
            recorder.write(EventKind::ShutDown(left));
        };
        match left {
            Some(work) => drop(join(close, work).await),
            None => close.await,
        }
        recorder.write(EventKind::Closed);
    }
}

/// How a client ends.
#[derive(Debug)]
enum End {
    /// When its work is done.
    Done,
    /// Its work is dropped after this time.
    Dropped(Duration),
    /// It is closed after this time, while its work continues.
    Closed(Duration),
    /// It is shut down after the first time, while its work continues, within the second.
    ShutDown(Duration, Duration),
}

impl End {
    fn draw(setting: &Setting, rng: &mut Rng) -> Self {
        let after = setting.timeout.mul_f64(20.0 * rng.f64() * rng.f64());
        match rng.u8(..6) {
            0 => Self::Dropped(after),
            1 => {
                // Drawn separately, so that other draws stay the same.
                let mut rng = Rng::with_seed(u64::try_from(after.as_nanos()).unwrap_or_default());
                match rng.bool() {
                    true => Self::ShutDown(after, setting.timeout.mul_f64(0.5 + 3.0 * rng.f64())),
                    false => Self::Closed(after),
                }
            }
            _ => Self::Done,
        }
    }
}

/// Records the state of a client's connection until the client is closed.
async fn watch(client: Client, recorder: ClientRecorder, controls: Controls) {
    let mut states = client.state();
    let following = async {
        while let Some(connection) = states.next().await {
            let state = match connection.state {
                ConnectionState::Connecting => LinkState::Connecting,
                ConnectionState::Connected => LinkState::Connected,
                ConnectionState::Suspended => LinkState::Suspended,
                ConnectionState::Closed => LinkState::Closed,
                _ => LinkState::Lost,
            };
            // A client that closes while it opens its next session does not report that session, so the
            // session does not belong to the generation that was reported last.
            let session = client.session_id().filter(|_| state != LinkState::Closed);
            recorder.write(EventKind::Connection {
                state,
                generation: connection.generation,
                suspensions: connection.suspensions,
                session,
            });
        }
    };
    controls.gate(following).await;
}

/// Settings of a client on the host `name`.
pub(crate) fn builder(
    setting: &Setting,
    name: &str,
    controls: &Controls,
    recorder: Option<ClientRecorder>,
) -> ClientBuilder {
    let builder = Client::builder(server::connect_string(setting));
    let builder = if setting.persistent_watches { builder.persistent_watches() } else { builder };
    // All clients work on the same nodes. Only their own nodes are restricted to them.
    let builder = match setting.tenants {
        true => builder.auth_digest(name, "word").allow_plaintext_auth().acl([Acl::open_unsafe()]),
        false => builder,
    };
    builder
        .session_timeout(setting.timeout)
        .server_tick(setting.tick)
        .operation_timeout(setting.operation_timeout)
        .identity(name)
        // One thread does everything, in an order that depends on the seed.
        .inline_hooks()
        .clock(ProcessClock::new(controls.clone()))
        .transport(SimulatedTransport::new(controls.clone(), recorder))
}
