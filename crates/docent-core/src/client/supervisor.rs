//! The one task that owns a client's sessions: runs the present one, keeps its guards' lease, opens the next.

use super::aftermath::Aftermath;
use super::told::{tell_connected, tell_loss, tell_suspended};
use super::{ConnectionState, RollbackPolicy};
use crate::guard::{SessionGeneration, heartbeat};
use crate::operation::{SessionTask, Shared};
use crate::session::{LinkState, SessionEnd};
use crate::task::PollOnWake;
use futures_util::FutureExt;
use futures_util::future::{self, BoxFuture, OptionFuture};
use std::convert::Infallible;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Pause between attempts after the servers refused our credentials, give or take a quarter: only a person
/// can mend that, so it is enough to notice within a minute (decision 6).
const REFUSED_PAUSE: Duration = Duration::from_secs(30);

/// Runs until the client is closed and its session is.
pub(crate) async fn supervise(shared: Arc<Shared>, mut task: SessionTask) {
    // Guards, pending operations and `close` learn of the end of this task, also when it panics.
    let _aftermath = Aftermath(Arc::clone(&shared));
    let mut generation = shared.generation();
    let over = closing_over(Arc::clone(&shared)).boxed().shared();
    loop {
        let end = run_generation(&shared, &generation, task, over.clone()).await;
        generation.end(end);
        if shared.closing.is_cancelled() {
            break;
        }
        shared.instruments.session_lost(end.label());
        if end == SessionEnd::RolledBack && !goes_on(&shared) {
            return;
        }
        tell_loss(&shared, &generation, end);
        let state = match end {
            SessionEnd::AuthFailed => ConnectionState::AuthFailed,
            _ => ConnectionState::Lost,
        };
        publish(&shared, &generation, state, generation.losses());
        end_at_servers(&shared, &generation, end);
        if end == SessionEnd::AuthFailed && !pause_after_refusal(&shared).await {
            break;
        }
        (generation, task) = shared.open_next(&generation, end);
    }
    if !generation.session.is_gone() {
        end_at_servers(&shared, &generation, SessionEnd::Closed);
    }
    tokio::select! {
        biased;
        () = shared.cleanup.all_ended() => {}
        () = over => {}
    }
    tracing::info!(client = %shared.label, generation = generation.number, "client is closed");
    shared.instruments.state(ConnectionState::Closed.number());
    shared.connection.send_modify(|connection| connection.state = ConnectionState::Closed);
}

/// Ends a session at the servers, in the background: they may keep it, and its nodes would stand until its
/// timeout (decision 25).
fn end_at_servers(shared: &Arc<Shared>, generation: &Arc<SessionGeneration>, end: SessionEnd) {
    if end == SessionEnd::Expired && planted!(ExpiredIsGone) {
        return;
    }
    let (id, session) = (generation.session.id(), &generation.session);
    let Some(closer) = session.closer().filter(|_| shared.notes.add_lingering(id, session.owned())) else {
        return;
    };
    let (ours, over) = (Arc::clone(shared), Arc::clone(generation));
    let after = async move {
        guards_dropped(&ours, &over, end).await;
        // Kept nodes of this session are replaced by the next one while this one lives, so that nobody sees
        // them gone (decision 7).
        let replaced =
            tokio::time::timeout(ours.config.operation_timeout, ours.kept.attempted(over.number + 1));
        tokio::select! {
            _ = replaced => {}
            () = ours.closing.cancelled() => {}
        }
    };
    let notes = Arc::clone(shared);
    shared.cleanup.end_session(closer, after.boxed(), Box::new(move || notes.notes.set_over(id)));
}

/// Waits until the guards of a session that has ended are dropped: until then their work may be stopping, and
/// the end of the session gives their places to others. At most for a margin where they may have lost their
/// places already, and once the client is closed.
async fn guards_dropped(shared: &Shared, generation: &SessionGeneration, end: SessionEnd) {
    let margin = async {
        match end {
            SessionEnd::Expired => tokio::time::sleep(generation.lease.margin()).await,
            _ => pending().await,
        }
    };
    tokio::select! {
        () = generation.held.all_dropped() => {}
        () = margin => {}
        () = shared.closing.cancelled() => time_to_stop(shared, generation).await,
    }
}

/// Waits, while the client closes, until the guards of a session are dropped: at most for the time to stop
/// that the loss of a lease gives their work (decision 25), and for half of what is left.
async fn time_to_stop(shared: &Shared, generation: &SessionGeneration) {
    tokio::select! {
        () = generation.held.all_dropped() => {}
        () = tokio::time::sleep(generation.lease.margin().min(shared.config.operation_timeout / 4)) => {}
        () = shared.stages.part_over(2) => {}
    }
}

/// Resolves at the end of the time in which a client closes.
type Over = future::Shared<BoxFuture<'static, ()>>;

/// Resolves when the client is to close, and that took as long as an operation may, or until the shutdown's
/// deadline.
async fn closing_over(shared: Arc<Shared>) {
    shared.closing.cancelled().await;
    tokio::select! {
        () = tokio::time::sleep(shared.config.operation_timeout) => {}
        () = shared.stages.part_over(1) => {}
    }
}

/// Counts a restore of the servers. False when that is the end of the client.
fn goes_on(shared: &Shared) -> bool {
    let stop = shared.config.on_rollback == RollbackPolicy::Stop;
    tracing::error!(client = %shared.label, ?stop, "the servers were restored from an older copy");
    shared.connection.send_modify(|connection| {
        connection.rollbacks += 1;
        if stop {
            connection.state = ConnectionState::RolledBack;
        }
    });
    if stop {
        shared.instruments.state(ConnectionState::RolledBack.number());
        shared.closing.cancel();
    }
    !stop
}

/// Waits until credentials that were refused may be tried again. False when the client is closed before that.
async fn pause_after_refusal(shared: &Shared) -> bool {
    let pause = REFUSED_PAUSE.mul_f64(0.75 + fastrand::f64() / 2.0);
    tokio::select! {
        () = shared.closing.cancelled() => false,
        () = tokio::time::sleep(pause) => true,
    }
}

/// Runs one session until it ends or, when the client closes, until it is closed or that is `over`.
async fn run_generation(
    shared: &Arc<Shared>,
    generation: &Arc<SessionGeneration>,
    mut task: SessionTask,
    over: Over,
) -> SessionEnd {
    // The session's task wakes for every request, the lease and the link's state hardly ever: `PollOnWake`
    // polls these only when they were woken themselves.
    let mut attended = PollOnWake::new(attend(shared, generation, over));
    tokio::select! {
        biased;
        end = &mut task => end,
        end = &mut attended => end,
    }
}

/// Keeps the lease and publishes the link's state beside the session's task. Resolves when the client closes
/// and that is `over` before the session has ended.
async fn attend(shared: &Shared, generation: &Arc<SessionGeneration>, mut over: Over) -> SessionEnd {
    let mut heartbeat = pin!(heartbeat::keep(generation));
    let mut close = pin!(close(shared, generation));
    let mut link = generation.session.link();
    // Connected is published after one attempt at each kept node.
    let mut restored = Some(Box::pin(restored(shared, generation)));
    loop {
        let is_up = link.borrow().up;
        tokio::select! {
            // So that the log says that the link is lost before it names the guards which are lost with it.
            biased;
            Ok(()) = link.changed() => {
                let state = *link.borrow_and_update();
                if restored.is_none() || !state.up {
                    publish_link(shared, generation, state);
                }
            }
            never = &mut heartbeat => match never {},
            Some(()) = OptionFuture::from(restored.as_mut()), if is_up => {
                restored = None;
                let state = *link.borrow();
                publish_link(shared, generation, state);
            }
            never = &mut close => match never {},
            () = &mut over => return SessionEnd::Closed,
        }
    }
}

/// Waits for the first attempt at each kept node in a session, at most for the operation timeout. A node that
/// cannot be kept reports that on its own handle.
async fn restored(shared: &Shared, generation: &SessionGeneration) {
    let _ =
        tokio::time::timeout(shared.config.operation_timeout, shared.kept.attempted(generation.number)).await;
}

/// Waits until the client is to close, then ends the session in order: no new calls, pending deletes, guards,
/// the session itself.
async fn close(shared: &Shared, generation: &SessionGeneration) -> Infallible {
    shared.closing.cancelled().await;
    // On the heap: it is of no use until then.
    Box::pin(close_now(shared, generation)).await;
    pending().await
}

async fn close_now(shared: &Shared, generation: &SessionGeneration) {
    let most = shared.config.operation_timeout;
    generation.session.drain();
    // Half of the time: the end of the session cleans up more than all deletes.
    tokio::select! {
        () = shared.cleanup.drained() => {}
        () = tokio::time::sleep(most / 2) => {}
        () = shared.stages.part_over(2) => {}
    }
    // Guards learn of their end first, and the servers after them: once the session is closed there, others
    // get the locks.
    generation.end(SessionEnd::Closed);
    if !planted!(NoMarginAtClose) {
        time_to_stop(shared, generation).await;
    }
    generation.session.close();
}

fn publish_link(shared: &Shared, generation: &SessionGeneration, link: LinkState) {
    let state = match link.up {
        true => ConnectionState::Connected,
        false if link.losses > 0 => ConnectionState::Suspended,
        false => return,
    };
    if state == ConnectionState::Connected {
        tell_connected(shared, generation);
        shared.instruments.connected();
        if generation.lease.is_short() {
            tracing::warn!(
                client = %shared.label,
                timeout = ?generation.lease.timeout(),
                tick = ?generation.lease.tick(),
                "session timeout is below four ticks of the server: locks are refused unless short leases are accepted"
            );
        }
    } else {
        tell_suspended(shared, generation);
        shared.instruments.suspended();
    }
    publish(shared, generation, state, link.losses);
}

/// Publishes a state of the connection in `generation`, whose link was lost `losses` times by then.
fn publish(shared: &Shared, generation: &SessionGeneration, state: ConnectionState, losses: u64) {
    shared.instruments.state(state.number());
    shared.connection.send_modify(|connection| {
        connection.state = state;
        connection.generation = generation.number;
        let known = generation.published_losses.swap(losses, Relaxed);
        connection.suspensions =
            if planted!(SuspensionsOfTheSession) { losses } else { connection.suspensions + losses - known };
    });
}
