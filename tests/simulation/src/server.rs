use crate::clock::WorldTime;
use crate::listener::SimulatedBind;
use crate::setting::Setting;
use docent_server::{Dialect, Follower, Server, StartError};
use std::cell::OnceCell;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::mpsc;
use turmoil::Sim;

/// The leader's name in the simulated network.
pub(crate) const LEADER: &str = "server";

/// The follower's name, in worlds that have one.
pub(crate) const FOLLOWER: &str = "follower";

/// The port of all servers.
pub(crate) const PORT: u16 = 2181;

/// Commands to the leader's host, which has to wait for their completion.
#[derive(Debug)]
enum Command {
    StopListening,
    ListenAgain,
}

/// The servers of the world, as the step loop sees them.
#[derive(Debug)]
pub(crate) struct Servers {
    leader: Rc<OnceCell<Server>>,
    follower: Rc<OnceCell<Follower>>,
    commands: mpsc::UnboundedSender<Command>,
}

impl Servers {
    /// Adds the servers' hosts to the network.
    pub(crate) fn add(sim: &mut Sim<'_>, setting: &Setting, time: &WorldTime) -> Self {
        let (leader, follower) = (Rc::new(OnceCell::new()), Rc::new(OnceCell::new()));
        let (commands, receiver) = mpsc::unbounded_channel();
        sim.client(LEADER, lead(Rc::clone(&leader), receiver, setting.clone(), time.clone()));
        if let Some(relay) = setting.relay {
            sim.client(FOLLOWER, follow(Rc::clone(&leader), Rc::clone(&follower), relay, setting.clone()));
        }
        Self { leader, follower, commands }
    }

    /// Lets the server stop listening, or listen again, in the next step.
    pub(crate) fn set_down(&self, down: bool) {
        // The receiver lives as long as the host.
        let _ = self.commands.send(if down { Command::StopListening } else { Command::ListenAgain });
    }

    /// The leader, once it has started.
    pub(crate) fn leader(&self) -> Option<&Server> {
        self.leader.get()
    }

    /// The follower, if there is one.
    pub(crate) fn follower(&self) -> Option<&Follower> {
        self.follower.get()
    }

    /// Sets the longest session timeout that is granted to clients that open or resume a session from now on.
    pub(crate) fn grant(&self, longest: Duration) {
        const SHORTEST: Duration = Duration::from_millis(1);
        if let Some(leader) = self.leader() {
            leader.set_session_timeouts(SHORTEST, longest);
        }
        if let Some(follower) = self.follower() {
            follower.set_session_timeouts(SHORTEST, longest);
        }
    }
}

/// Connect string of the clients.
pub(crate) fn connect_string(setting: &Setting) -> String {
    match setting.relay {
        None => format!("{LEADER}:{PORT}"),
        Some(_) => format!("{LEADER}:{PORT},{FOLLOWER}:{PORT}"),
    }
}

/// The names of the servers in the simulated network.
pub(crate) fn names(setting: &Setting) -> &'static [&'static str] {
    if setting.relay.is_some() { &[LEADER, FOLLOWER] } else { &[LEADER] }
}

async fn lead(
    slot: Rc<OnceCell<Server>>,
    mut commands: mpsc::UnboundedReceiver<Command>,
    setting: Setting,
    time: WorldTime,
) -> turmoil::Result {
    let server = Server::builder()
        .bind((Ipv4Addr::UNSPECIFIED, PORT).into())
        .allow_remote()
        .tick(setting.tick)
        .session_timeouts(setting.tick, setting.timeout)
        .zxid_in_events(setting.zxid_in_events)
        .seed(setting.seed)
        .clock(move || time.now())
        .journal(true)
        .start_on(SimulatedBind)
        .await?;
    let server = slot.get_or_init(|| server);
    while let Some(command) = commands.recv().await {
        match command {
            Command::StopListening => server.stop_listening().await?,
            Command::ListenAgain => server.listen_again().await?,
        }
    }
    Ok(())
}

async fn follow(
    leader: Rc<OnceCell<Server>>,
    slot: Rc<OnceCell<Follower>>,
    relay: Duration,
    setting: Setting,
) -> turmoil::Result {
    let leader = loop {
        match leader.get() {
            Some(leader) => break leader,
            None => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    };
    let follower = leader
        .follower()
        .bind((Ipv4Addr::UNSPECIFIED, PORT).into())
        .allow_remote()
        .relay_interval(relay)
        .sync_limit(setting.sync_limit)
        .lag(setting.lag.unwrap_or_default())
        .start_on(SimulatedBind)
        .await
        .map_err(Box::<StartError>::new)?;
    if setting.old_follower {
        follower.set_dialect(Dialect::ZooKeeper35);
    }
    slot.get_or_init(|| follower);
    std::future::pending().await
}
