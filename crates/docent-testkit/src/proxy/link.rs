use super::lane::Lane;
use super::state::State;
use super::tap::Tap;
use super::trace::Direction;
use crate::net::{NetStream, reset_on_drop};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::split;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Error of a link that must be reset.
#[derive(Debug)]
pub(super) struct Broken;

/// Connection of a client, with the one to the server that belongs to it.
///
/// # On drop
/// Both are closed.
#[derive(Debug)]
pub(super) struct Link {
    reset: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Link {
    pub(super) fn open(number: u64, client: NetStream, server: SocketAddr, state: Arc<State>) -> Self {
        let (reset, asked) = oneshot::channel();
        let task = tokio::spawn(async move { run(number, client, server, &state, asked).await });
        Self { reset, task }
    }

    pub(super) fn is_over(&self) -> bool {
        self.task.is_finished()
    }

    /// Resets both connections; they are gone when this returns.
    pub(super) async fn reset(mut self) {
        let (unused, _) = oneshot::channel();
        // A link that is over by itself does not listen.
        let _ = std::mem::replace(&mut self.reset, unused).send(());
        let _ = (&mut self.task).await;
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(
    number: u64,
    mut client: NetStream,
    server: SocketAddr,
    state: &State,
    asked: oneshot::Receiver<()>,
) {
    let Ok(mut server) = state.sessions.net().connect(server).await else {
        reset_on_drop(&client);
        return;
    };
    let ended = tokio::select! {
        ended = pass(number, &mut client, &mut server, state) => ended,
        Ok(()) = asked => Err(Broken),
    };
    if ended.is_err() {
        reset_on_drop(&client);
        reset_on_drop(&server);
    }
}

async fn pass(
    number: u64,
    client: &mut NetStream,
    server: &mut NetStream,
    state: &State,
) -> Result<(), Broken> {
    let tap = Mutex::new(Tap::new(number));
    let (from_client, to_client) = split(client);
    let (from_server, to_server) = split(server);
    let lane = |direction| Lane { link: number, direction, state, tap: &tap };
    tokio::try_join!(
        lane(Direction::ToServer).run(from_client, to_server),
        lane(Direction::ToClient).run(from_server, to_client),
    )
    .map(|_| ())
}
