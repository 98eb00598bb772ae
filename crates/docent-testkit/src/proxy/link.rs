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

/// A client's connection, and the connection to the server that belongs to it.
///
/// # On drop
/// Both connections are closed.
#[derive(Debug)]
pub(super) struct Link {
    reset: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Link {
    pub(super) fn open(number: u64, client: NetStream, server: SocketAddr, state: Arc<State>) -> Self {
        let (reset, reset_requested) = oneshot::channel();
        let task = tokio::spawn(async move { run(number, client, server, &state, reset_requested).await });
        Self { reset, task }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    /// Resets both connections, and waits until they are closed.
    pub(super) async fn reset(mut self) {
        let (unused, _) = oneshot::channel();
        // A link that has ended on its own no longer receives this.
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
    reset_requested: oneshot::Receiver<()>,
) {
    let Ok(mut server) = state.sessions.net().connect(server).await else {
        reset_on_drop(&client);
        return;
    };
    let ended = tokio::select! {
        ended = pass(number, &mut client, &mut server, state) => ended,
        Ok(()) = reset_requested => Err(Broken),
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
