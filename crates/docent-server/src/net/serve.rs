use super::hub::Hub;
use super::link;
use super::listener::{Bind, Listener};
use crate::config::{Config, millis};
use crate::state::Effects;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What a server's handle asks of its task.
#[derive(Debug)]
pub(crate) enum Command {
    /// Close the listener and all links; sessions do not expire from here on.
    StopListening(oneshot::Sender<()>),
    /// Listen on the same address again.
    ListenAgain(oneshot::Sender<io::Result<()>>),
}

/// The task of a server: takes links in and ends sessions that fell silent.
pub(crate) struct Serve<B: Bind> {
    pub(crate) bind: B,
    pub(crate) listener: Option<B::Listener>,
    pub(crate) address: SocketAddr,
    pub(crate) hub: Arc<Hub>,
    pub(crate) config: Config,
    pub(crate) links: TaskTracker,
    pub(crate) stop: CancellationToken,
}

/// How long to wait after the operating system refused to hand a link over, such as for want of file descriptors.
const AFTER_REFUSAL: Duration = Duration::from_millis(50);

pub(crate) async fn serve<B: Bind>(mut serve: Serve<B>, mut commands: mpsc::Receiver<Command>) {
    let (clock, stop) = (serve.hub.clock, serve.stop.clone());
    let (tick, check) = (serve.config.tick_ms(), millis(serve.config.container_check).max(1));
    let mut next_check = clock.now_ms() + check;
    loop {
        let next_tick = (clock.now_ms() / tick + 1) * tick;
        tokio::select! {
            () = stop.cancelled() => break,
            command = commands.recv() => match command {
                Some(command) => serve.obey(command).await,
                None => break,
            },
            () = serve.accept() => {}
            () = sleep_until(clock.instant(next_tick.min(next_check))) => {
                let now = clock.now_ms();
                serve.pass_time(now, now >= next_check);
                if now >= next_check {
                    next_check = now + check;
                }
            }
        }
    }
    serve.listener = None;
    serve.hub.lock().cut_all();
}

impl<B: Bind> Serve<B> {
    async fn obey(&mut self, command: Command) {
        // Whoever asked may have stopped waiting for the answer.
        match command {
            Command::StopListening(done) => {
                self.listener = None;
                let mut inner = self.hub.lock();
                inner.cut_all();
                inner.state.freeze();
                let _ = done.send(());
            }
            Command::ListenAgain(done) => {
                let _ = done.send(self.listen_again().await);
            }
        }
    }

    async fn listen_again(&mut self) -> io::Result<()> {
        if self.listener.is_none() {
            self.listener = Some(self.bind.bind(self.address).await?);
            self.hub.lock().state.thaw(self.hub.clock.now_ms());
        }
        Ok(())
    }

    /// Takes the next link in. Waits for ever while the server does not listen.
    async fn accept(&mut self) {
        let Some(listener) = &mut self.listener else { return std::future::pending().await };
        match listener.accept().await {
            Ok((io, peer)) => {
                // Without a place the link is dropped, which closes it.
                if let Some((id, wake)) = self.hub.enter(peer) {
                    let hub = Arc::clone(&self.hub);
                    self.links.spawn(link::run(io, hub, id, wake, self.config.limits.handshake));
                }
            }
            Err(error) => {
                tracing::warn!(%error, "accepting a link failed");
                sleep(AFTER_REFUSAL).await;
            }
        }
    }

    fn pass_time(&self, now: i64, check_containers: bool) {
        let mut inner = self.hub.lock();
        let mut effects = Effects::default();
        inner.state.expire_overdue(now, &mut effects);
        if check_containers {
            inner.state.reap_containers(now, &mut effects);
        }
        inner.carry_out(&effects);
    }
}
