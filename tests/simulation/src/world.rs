use crate::client::{ClientHost, Common};
use crate::clock::WorldTime;
use crate::faults::{Faults, Victims};
use crate::observer::Observers;
use crate::operator::Operator;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::plan;
use crate::server::Servers;
use crate::setting::Setting;
use crate::workload::{self, Denied, Workload};
use anyhow::{Context, Result, bail};
use docent_checker::{Change, EventKind, Facts, Recorder, Run};
use docent_server::{Server, Transaction, TransactionKind};
use fastrand::Rng;
use std::rc::Rc;
use std::time::{Duration, UNIX_EPOCH};
use tokio_util::sync::CancellationToken;
use turmoil::{Builder, Sim};

/// Maximum number of messages that can be in flight between two hosts.
const LINK_CAPACITY: usize = 1 << 14;

/// Everything that exists in a run: the hosts in their network, and the loop that lets faults happen.
pub(crate) struct World {
    sim: Sim<'static>,
    time: WorldTime,
    setting: Setting,
    recorder: Recorder,
    workload: Rc<dyn Workload>,
    servers: Servers,
    operator: Operator,
    clients: Vec<ClientHost>,
    faults: Faults,
    observers: Option<Observers>,
    stop: CancellationToken,
    denied: Denied,
}

impl World {
    /// Creates a world from a seed.
    ///
    /// # Errors
    /// Returns an error if the recipe is unknown.
    pub(crate) fn new(options: &Options) -> Result<Self> {
        let mut rng = Rng::with_seed(options.seed);
        let setting = Setting::draw(options, &mut rng.fork());
        let workload = workload::by_name(&options.recipe, &mut rng.fork()).with_context(|| {
            format!("recipe {:?} must be one of {:?}", options.recipe, workload::names().collect::<Vec<_>>())
        })?;
        let observers = number_of_observers(&setting, &*workload);
        // Observers send each server operations that an older server does not have, and they have no
        // credentials.
        let setting = Setting {
            old_follower: setting.old_follower && observers == 0,
            tenants: setting.tenants && observers == 0,
            timeout: setting.timeout.max(workload.least_timeout()),
            ..setting
        };
        let plan = match options.calm {
            true => Vec::new(),
            false => plan::draw(&setting, workload.theme(), &mut rng.fork()),
        };
        let time = WorldTime::default();
        let clock = time.clone();
        let recorder = Recorder::new(move || clock.now());
        let mut sim = network(options, &setting);
        let servers = Servers::add(&mut sim, &setting, &time);
        let (stop, laid_out) = (CancellationToken::new(), CancellationToken::new());
        let operator = Operator::add(&mut sim, &setting, &*workload, laid_out.clone());
        let denied = Denied::default();
        let common = Common {
            setting: setting.clone(),
            recorder: recorder.clone(),
            workload: Rc::clone(&workload),
            laid_out,
            stop: stop.clone(),
            denied: denied.clone(),
        };
        let numbers = 0..u32::try_from(setting.clients).context("too many clients")?;
        let clients = numbers.map(|number| ClientHost::add(&mut sim, number, &common, &mut rng)).collect();
        let faults = Faults::new(plan);
        let observers = add_observers(observers, options, &setting, &*workload, (&mut sim, &time));
        Ok(Self {
            sim,
            time,
            setting,
            recorder,
            workload,
            servers,
            operator,
            clients,
            faults,
            observers,
            stop,
            denied,
        })
    }

    /// Runs the world to its end, and returns the outcome.
    pub(crate) fn run(mut self) -> Outcome {
        let unfinished = self.live().err().map(|error| format!("{error:#}"));
        let journal = self.servers.leader().map(Server::journal).unwrap_or_default();
        let facts = self.facts(&journal);
        let run = Run { events: self.recorder.events(), journal: Change::of(&journal, 0), facts };
        Outcome::new(self.setting, run, &self.workload.emptied(), unfinished, &self.denied.all())
    }

    /// Facts that neither the record nor the journal contains.
    fn facts(&self, journal: &[Transaction]) -> Facts {
        let mut facts = Facts::new(self.setting.tick, self.setting.timeout);
        let granted = journal.iter().filter_map(|transaction| match transaction.kind {
            TransactionKind::SessionOpened { timeout, .. } => Some(timeout),
            TransactionKind::SessionEnded { timeout, .. } => Some(timeout),
            _ => None,
        });
        facts.shortest_timeout = granted.min().unwrap_or(self.setting.timeout);
        facts.limits = self.workload.limits(journal);
        facts.noted = self.workload.noted(journal);
        facts.queues = self.workload.queues();
        facts.queued = self.workload.queued(journal);
        facts.written = self.workload.written(journal);
        facts.watchers = self.observers.as_ref().map(Observers::links).unwrap_or_default();
        facts.sessions = self.clients.iter().flat_map(|client| client.controls.sessions()).collect();
        facts.tolerances = self.setting.tolerances(self.faults.freeze());
        facts.end.at = self.sim.elapsed();
        if let Some(server) = self.servers.leader() {
            let watches = |id| server.session(id).map_or(0, |session| session.watches);
            facts.end.sessions = server.sessions().into_iter().map(|id| (id, watches(id))).collect();
            facts.end.nodes = server.nodes();
            facts.end.watches = server.watch_count();
        }
        facts
    }

    fn live(&mut self) -> Result<()> {
        while self.sim.elapsed() < self.setting.turbulence {
            self.step()?;
            self.let_faults_happen(Faults::apply);
        }
        self.let_faults_happen(|faults, _, victims| faults.end(victims));
        self.recorder.world(EventKind::Calm);
        self.stop.cancel();
        self.until("the end of all clients", self.patience(), |world| !world.any_client_runs())?;
        if let Some(observers) = &self.observers {
            observers.stop.cancel();
        }
        self.until("the end of all observers", self.patience(), |world| !world.any_observer_runs())?;
        self.operator.dismiss();
        // The session of a dead client lives until it expires.
        let expiry = self.setting.timeout + self.setting.tick * 3;
        self.until("the end of all sessions", expiry, Self::is_empty)
    }

    /// How long everything may take to come to its end.
    fn patience(&self) -> Duration {
        self.setting.timeout * 20 + self.setting.operation_timeout * 4 + Duration::from_secs(30)
    }

    fn step(&mut self) -> Result<()> {
        self.time.set(self.sim.elapsed());
        match self.sim.step() {
            Ok(_) => Ok(()),
            Err(error) => bail!("a host failed at {:?}: {error}", self.sim.elapsed()),
        }
    }

    /// Steps until `done` returns true, for at most `patience`.
    fn until(
        &mut self,
        what: &str,
        patience: Duration,
        mut done: impl FnMut(&mut Self) -> bool,
    ) -> Result<()> {
        let end = self.sim.elapsed() + patience;
        while !done(self) {
            if self.sim.elapsed() >= end {
                bail!("{what} was not reached within {patience:?}");
            }
            self.step()?;
        }
        Ok(())
    }

    fn let_faults_happen(&mut self, what: impl Fn(&mut Faults, Duration, &mut Victims<'_, '_>)) {
        let now = self.sim.elapsed();
        self.time.set(now);
        let mut victims = Victims {
            sim: &mut self.sim,
            clients: &self.clients,
            servers: &self.servers,
            operator: &self.operator,
            recorder: &self.recorder,
            setting: &self.setting,
        };
        what(&mut self.faults, now, &mut victims);
        if let Some(observers) = &mut self.observers {
            victims.clients = &observers.hosts;
            victims.recorder = &observers.recorder;
            what(&mut observers.faults, now, &mut victims);
        }
    }

    fn any_client_runs(&mut self) -> bool {
        self.clients.iter().any(|client| self.sim.is_host_running(client.name.as_str()))
    }

    fn any_observer_runs(&mut self) -> bool {
        let observers = self.observers.iter().flat_map(|observers| &observers.hosts);
        observers.map(|host| host.name.as_str()).any(|name| self.sim.is_host_running(name))
    }

    fn is_empty(&mut self) -> bool {
        self.servers.leader().is_some_and(|server| server.session_count() == 0)
    }
}

/// Number of observers: those of the workload, and at least one in every ninth run.
fn number_of_observers(setting: &Setting, workload: &dyn Workload) -> u32 {
    const EVERY: u64 = 9;
    workload.observers().max(u32::from(setting.seed.is_multiple_of(EVERY)))
}

fn add_observers(
    count: u32,
    options: &Options,
    setting: &Setting,
    workload: &dyn Workload,
    (sim, time): (&mut Sim<'static>, &WorldTime),
) -> Option<Observers> {
    let clock = time.clone();
    let recorder = Recorder::new(move || clock.now());
    let paths = ["/".to_owned()].into_iter().chain(workload.watched()).collect();
    (count > 0).then(|| Observers::add(sim, setting, (count, paths, options.calm), recorder))
}

fn network(options: &Options, setting: &Setting) -> Sim<'static> {
    const A_YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    Builder::new()
        .rng_seed(setting.seed)
        .epoch(UNIX_EPOCH)
        .simulation_duration(A_YEAR)
        .tick_duration(options.step)
        .min_message_latency(Duration::ZERO)
        .max_message_latency(setting.latency)
        .tcp_capacity(LINK_CAPACITY)
        .enable_random_order()
        .build()
}
