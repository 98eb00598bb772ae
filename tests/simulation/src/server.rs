use crate::listener::SimulatedBind;
use crate::setting::Setting;
use docent_server::{Server, StartError};
use std::cell::OnceCell;
use std::net::Ipv4Addr;
use std::rc::Rc;
use tokio::sync::mpsc;
use turmoil::Sim;

/// The server's name in the simulated network.
pub(crate) const NAME: &str = "server";

/// Its port.
pub(crate) const PORT: u16 = 2181;

/// What the server is told to do. It acts on its own host, where its clock runs.
#[derive(Debug)]
pub(crate) enum Command {
    /// End a session.
    Expire(i64),
    /// Stop listening.
    GoAway,
    /// Listen again.
    ComeBack,
}

/// The one server of the world, as the step loop sees it.
#[derive(Debug)]
pub(crate) struct ServerHost {
    server: Rc<OnceCell<Server>>,
    commands: mpsc::UnboundedSender<Command>,
}

impl ServerHost {
    /// Puts the server's host into the network.
    pub(crate) fn add(sim: &mut Sim<'_>, setting: &Setting) -> Self {
        let server = Rc::new(OnceCell::new());
        let (commands, mut receiver) = mpsc::unbounded_channel();
        let (slot, setting) = (Rc::clone(&server), setting.clone());
        sim.client(NAME, async move {
            let started = start(&setting).await?;
            let server = slot.get_or_init(|| started);
            while let Some(command) = receiver.recv().await {
                obey(server, command).await?;
            }
            Ok(())
        });
        Self { server, commands }
    }

    /// Tells the server to do something, which it does with the next step.
    pub(crate) fn tell(&self, command: Command) {
        // The receiver lives as long as the host.
        let _ = self.commands.send(command);
    }

    /// The server, once it has started.
    pub(crate) fn get(&self) -> Option<&Server> {
        self.server.get()
    }
}

async fn start(setting: &Setting) -> Result<Server, StartError> {
    Server::builder()
        .bind((Ipv4Addr::UNSPECIFIED, PORT).into())
        .allow_remote()
        .tick(setting.tick)
        .session_timeouts(setting.tick, setting.timeout)
        .seed(setting.seed)
        .journal(true)
        .start_on(SimulatedBind)
        .await
}

async fn obey(server: &Server, command: Command) -> Result<(), StartError> {
    match command {
        Command::Expire(session) => {
            server.expire(session);
            Ok(())
        }
        Command::GoAway => server.stop_listening().await,
        Command::ComeBack => server.listen_again().await,
    }
}
