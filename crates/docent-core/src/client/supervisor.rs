//! The one task that owns a client's sessions: runs the present one, keeps its guards' lease, opens the next.

use crate::client::aftermath::Aftermath;
use crate::client::config::RollbackPolicy;
use crate::client::core::{Core, SessionTask};
use crate::client::generation::SessionGeneration;
use crate::client::state::ConnectionState;
use crate::guard::keeper;
use crate::session::{LinkState, SessionEnd};
use crate::task::Seldom;
use crate::telemetry;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Pause between attempts after the servers refused our credentials, give or take a quarter: only a person
/// can mend that, so it is enough to notice within a minute (decision 6).
const REFUSED_PAUSE: Duration = Duration::from_secs(30);

/// Runs until the client is closed and its session is.
pub(crate) async fn supervise(core: Arc<Core>, mut task: SessionTask) {
    // Guards, pending operations and `close` learn of the end of this task, also when it panics.
    let _aftermath = Aftermath(Arc::clone(&core));
    let mut generation = core.generation();
    loop {
        let end = run_generation(&core, &generation, task).await;
        generation.end(end);
        if core.closing.is_cancelled() {
            break;
        }
        if end == SessionEnd::RolledBack && !goes_on(&core) {
            return;
        }
        tracing::warn!(generation = generation.number, session_id = %hex(&generation), ?end, "session is lost");
        let state = match end {
            SessionEnd::AuthFailed => ConnectionState::AuthFailed,
            _ => ConnectionState::Lost,
        };
        telemetry::connection(state);
        core.connection.send_modify(|connection| connection.state = state);
        // The servers may keep such a session, and its nodes would stand until its timeout (decision 6).
        if matches!(end, SessionEnd::Abandoned | SessionEnd::AuthFailed) {
            core.cleanup.end_abandoned(&generation);
        }
        if end == SessionEnd::AuthFailed && !pause_after_refusal(&core).await {
            break;
        }
        (generation, task) = core.open_next(&generation, end);
    }
    tracing::info!(generation = generation.number, "client is closed");
    telemetry::connection(ConnectionState::Closed);
    core.connection.send_modify(|connection| connection.state = ConnectionState::Closed);
}

/// Counts a restore of the servers. False when that is the end of the client.
fn goes_on(core: &Core) -> bool {
    let stop = core.config.on_rollback == RollbackPolicy::Stop;
    tracing::error!(?stop, "the servers were restored from an older copy");
    core.connection.send_modify(|connection| {
        connection.rollbacks += 1;
        if stop {
            connection.state = ConnectionState::RolledBack;
        }
    });
    if stop {
        core.closing.cancel();
    }
    !stop
}

/// Waits until credentials that were refused may be tried again. False when the client is closed before that.
async fn pause_after_refusal(core: &Core) -> bool {
    let pause = REFUSED_PAUSE.mul_f64(0.75 + fastrand::f64() / 2.0);
    tokio::select! {
        () = core.closing.cancelled() => false,
        () = tokio::time::sleep(pause) => true,
    }
}

/// Runs one session until it ends or, when the client closes, until it is closed or the operation timeout is
/// over.
async fn run_generation(
    core: &Arc<Core>,
    generation: &Arc<SessionGeneration>,
    mut task: SessionTask,
) -> SessionEnd {
    let published = AtomicU64::new(0);
    // The session's task wakes for every request, the lease and the link's state hardly ever: `Seldom` polls
    // these only when they were woken themselves.
    let mut attended = Seldom::new(attend(core, generation, &published));
    tokio::select! {
        biased;
        end = &mut task => {
            // A loss of the link that came together with the end counts, too.
            let missed = generation.losses() - published.load(Relaxed);
            core.connection.send_modify(|connection| connection.suspensions += missed);
            end
        }
        end = &mut attended => end,
    }
}

/// Keeps the lease and publishes the link's state beside the session's task; `published` counts the losses
/// told so far. Resolves when the client closes and that takes too long.
async fn attend(core: &Core, generation: &Arc<SessionGeneration>, published: &AtomicU64) -> SessionEnd {
    let mut keeper = pin!(keeper::keep(generation));
    let mut close = pin!(close(core, generation));
    let mut link = generation.session.link();
    // Connected is published after one attempt at each kept node.
    let mut restored = pin!(restored(core, generation));
    let mut is_restored = false;
    loop {
        let is_up = link.borrow().up;
        tokio::select! {
            never = &mut keeper => match never {},
            Ok(()) = link.changed() => {
                let state = *link.borrow_and_update();
                if is_restored || !state.up {
                    publish(core, generation, state, published);
                }
            }
            () = &mut restored, if is_up && !is_restored => {
                is_restored = true;
                let state = *link.borrow();
                publish(core, generation, state, published);
            }
            () = &mut close => return SessionEnd::Closed,
        }
    }
}

/// Waits for the first attempt at each kept node in a session, at most for the operation timeout. A node that
/// cannot be kept reports that on its own handle.
async fn restored(core: &Core, generation: &SessionGeneration) {
    let _ = tokio::time::timeout(core.config.operation_timeout, core.kept.attempted(generation.number)).await;
}

/// Waits until the client is to close, then ends the session in order: no new calls, pending deletes, the
/// session itself. Resolves when that took longer than an operation may.
async fn close(core: &Core, generation: &SessionGeneration) {
    core.closing.cancelled().await;
    generation.session.drain();
    let end = async {
        core.cleanup.drained().await;
        // Guards learn of their end first, and the servers after them: once the session is closed there,
        // others get the locks.
        generation.end(SessionEnd::Closed);
        generation.session.close();
        std::future::pending::<()>().await;
    };
    let _ = tokio::time::timeout(core.config.operation_timeout, end).await;
}

fn publish(core: &Core, generation: &SessionGeneration, link: LinkState, published: &AtomicU64) {
    let state = match link.up {
        true => ConnectionState::Connected,
        false if link.losses > 0 => ConnectionState::Suspended,
        false => return,
    };
    if state == ConnectionState::Connected {
        tracing::info!(generation = generation.number, session_id = %hex(generation), "connected");
        if generation.lease.is_short() {
            tracing::warn!(
                timeout = ?generation.lease.timeout(),
                tick = ?generation.lease.tick(),
                "session timeout is below four ticks of the server: locks are refused unless short leases are accepted"
            );
        }
    } else {
        tracing::info!(generation = generation.number, session_id = %hex(generation), "suspended");
    }
    telemetry::connection(state);
    core.connection.send_modify(|connection| {
        connection.state = state;
        connection.generation = generation.number;
        connection.suspensions += link.losses - published.swap(link.losses, Relaxed);
    });
}

fn hex(generation: &SessionGeneration) -> String {
    format!("{:#x}", generation.session.id())
}
