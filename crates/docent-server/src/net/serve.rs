use super::entrance::Entrance;
use super::listener::Bind;
use crate::EndCause;
use crate::config::Config;
use crate::time::millis;
use std::io;
use std::net::SocketAddr;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// A command from a server's handle to its task.
#[derive(Debug)]
pub(crate) enum Command {
    /// Close the listener and all links; sessions no longer expire.
    StopListening(oneshot::Sender<()>),
    /// Listen on the same address again.
    ListenAgain(oneshot::Sender<io::Result<()>>),
}

/// Task of a server. It accepts links, and ends sessions whose timeout has passed.
pub(crate) struct Serve<B: Bind> {
    pub(crate) bind: B,
    pub(crate) listener: Option<B::Listener>,
    pub(crate) address: SocketAddr,
    pub(crate) entrance: Entrance,
    pub(crate) config: Config,
    pub(crate) stop: CancellationToken,
}

pub(crate) async fn serve<B: Bind>(mut serve: Serve<B>, mut commands: mpsc::Receiver<Command>) {
    let (clock, stop) = (serve.entrance.hub.clock.clone(), serve.stop.clone());
    let (tick, check) = (serve.config.tick_ms(), millis(serve.config.container_check).max(1));
    let mut next_check = clock.now_ms().saturating_add(check);
    loop {
        let next_tick = (clock.now_ms() / tick + 1) * tick;
        // The fixed order makes simulation runs reproducible.
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            command = commands.recv() => match command {
                Some(command) => serve.obey(command).await,
                None => break,
            },
            () = clock.sleep_until(next_tick.min(next_check)) => {
                let now = clock.now_ms();
                serve.pass_time(now, now >= next_check);
                if now >= next_check {
                    next_check = now.saturating_add(check);
                }
            }
            () = serve.accept() => {}
        }
    }
    serve.listener = None;
    serve.entrance.hub.lock().cut_all();
}

impl<B: Bind> Serve<B> {
    async fn obey(&mut self, command: Command) {
        // The caller may have stopped waiting for the answer.
        match command {
            Command::StopListening(done) => {
                self.listener = None;
                let mut ensemble = self.entrance.hub.lock();
                ensemble.cut_all();
                ensemble.members.lose_pipes();
                ensemble.state.freeze();
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
            let hub = &self.entrance.hub;
            hub.lock().state.thaw(hub.clock.now_ms());
        }
        Ok(())
    }

    /// Accepts the next link. Never returns while the server does not listen.
    async fn accept(&mut self) {
        match &mut self.listener {
            Some(listener) => self.entrance.admit(listener).await,
            None => std::future::pending().await,
        }
    }

    fn pass_time(&self, now: i64, check_containers: bool) {
        let mut ensemble = self.entrance.hub.lock();
        ensemble.attend_waiting(now);
        for id in ensemble.state.overdue(now) {
            ensemble.take_step(|state, effects| state.expire(id, EndCause::Expired, now, effects));
        }
        let done = if check_containers { ensemble.state.done(now) } else { Vec::new() };
        for path in done {
            ensemble.take_step(|state, effects| state.reap(&path, now, effects));
        }
    }
}
