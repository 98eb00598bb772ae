use super::lane::Lane;
use super::state::State;
use super::tap::Tap;
use super::trace::Direction;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpStream;
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
    pub(super) fn open(number: u64, client: TcpStream, server: SocketAddr, state: Arc<State>) -> Self {
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
    mut client: TcpStream,
    server: SocketAddr,
    state: &State,
    asked: oneshot::Receiver<()>,
) {
    let Ok(mut server) = TcpStream::connect(server).await else {
        let _ = client.set_zero_linger();
        return;
    };
    let ended = tokio::select! {
        ended = pass(number, &mut client, &mut server, state) => ended,
        Ok(()) = asked => Err(Broken),
    };
    if ended.is_err() {
        let _ = client.set_zero_linger();
        let _ = server.set_zero_linger();
    }
}

async fn pass(
    number: u64,
    client: &mut TcpStream,
    server: &mut TcpStream,
    state: &State,
) -> Result<(), Broken> {
    client.set_nodelay(true).map_err(|_| Broken)?;
    server.set_nodelay(true).map_err(|_| Broken)?;
    let tap = Mutex::new(Tap::new(number));
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let lane = |direction| Lane { link: number, direction, state, tap: &tap };
    tokio::try_join!(
        lane(Direction::ToServer).run(from_client, to_server),
        lane(Direction::ToClient).run(from_server, to_client),
    )
    .map(|_| ())
}
