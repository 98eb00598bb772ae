use super::connect::Connect;
use super::shared::Shared;
use crate::session::SessionEnd;
use crate::session::requests::Phase;
use crate::time::{Clock, Timestamp, sleep_until};
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::future::pending;
use std::sync::Arc;
use tokio::sync::mpsc;
use zookeeper_client::{SessionState, StateWatcher};

/// Runs a session until it ends: opens it, follows its state, and polls the submitted requests.
pub(super) async fn run(
    shared: Arc<Shared>,
    mut calls: mpsc::UnboundedReceiver<BoxFuture<'static, ()>>,
    mut connect: Connect,
) -> SessionEnd {
    let _guard = EndOnDrop(Arc::clone(&shared));
    let Some(mut states) = open(&shared, &mut connect).await else {
        shared.end(SessionEnd::Closed);
        return shared.ended().unwrap_or(SessionEnd::Closed);
    };
    let mut phase = shared.phase.subscribe();
    let mut open = FuturesUnordered::new();
    follow(&shared, &connect, states.state());
    let end = loop {
        if let Some(end) = shared.ended() {
            break end;
        }
        tokio::select! {
            biased;
            state = states.changed() => follow(&shared, &connect, state),
            Ok(()) = phase.changed() => {}
            Some(call) = calls.recv() => open.push(call),
            Some(()) = open.next() => {}
            () = wait_for(shared.clock.as_ref(), shared.pulse_at()) => shared.pulse(),
            () = wait_for(shared.clock.as_ref(), shared.abandon_at()) => shared.end(SessionEnd::Abandoned),
        }
    };
    while let Ok(call) = calls.try_recv() {
        open.push(call);
    }
    // Each call observes the end and notifies its caller.
    while open.next().await.is_some() {}
    end
}

/// Ends a session whose driver is dropped, because its client stopped waiting for the close or its runtime is
/// shutting down. The crate must not keep such a session alive.
struct EndOnDrop(Arc<Shared>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end(SessionEnd::Closed);
    }
}

/// Opens the session. Returns `None` if the session was asked to close, or has ended, first.
async fn open(shared: &Shared, connect: &mut Connect) -> Option<StateWatcher> {
    let mut phase = shared.phase.subscribe();
    tokio::select! {
        biased;
        _ = phase.wait_for(|phase| !phase.is_before(Phase::Closing)) => None,
        (client, sent) = connect.session(shared) => {
            let states = client.state_watcher();
            let timeout = connect.options.least(client.session_timeout());
            shared.attached(client, timeout, sent);
            Some(states)
        }
    }
}

fn follow(shared: &Arc<Shared>, connect: &Connect, state: SessionState) {
    match state {
        SessionState::SyncConnected => {
            connect.attached();
            shared.connected();
        }
        // Reads of a read-only server may be arbitrarily old (decision 10), and the crate is not asked to
        // connect to one.
        SessionState::Disconnected | SessionState::ConnectedReadOnly => {
            connect.link_lost();
            shared.disconnected();
        }
        SessionState::Expired => shared.expired(),
        SessionState::AuthFailed => {
            connect.lost("authentication failed".to_owned());
            shared.end(SessionEnd::AuthFailed);
        }
        SessionState::Closed => {
            let was_requested = *shared.phase.borrow() == Phase::Closing;
            shared.end(if was_requested { SessionEnd::Closed } else { SessionEnd::Abandoned });
        }
    }
}

async fn wait_for(clock: &dyn Clock, deadline: Option<Timestamp>) {
    match deadline {
        Some(deadline) => sleep_until(clock, deadline).await,
        None => pending().await,
    }
}
