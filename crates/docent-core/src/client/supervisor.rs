//! The single task that owns a client's sessions: runs the current one, keeps its guards' lease, opens the
//! next.

use super::granted_timeout::check_granted;
use super::outage_log::{log_connected, log_loss, log_suspended, servers_unreachable, start_reminders};
use super::{ConnectionState, RollbackPolicy};
use crate::guard::{SessionGeneration, heartbeat};
use crate::operation::{SessionTask, Shared};
use crate::session::{LinkState, SessionEnd};
use crate::task::PollOnWake;
use crate::time::seconds;
use futures_util::FutureExt;
use futures_util::future::{self, BoxFuture, OptionFuture};
use std::convert::Infallible;
use std::future::pending;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Pause between attempts after the servers refused the client's credentials, give or take a quarter. Only a
/// person can fix that, so it is enough to notice the fix within a minute (decision 6).
const REFUSED_PAUSE: Duration = Duration::from_secs(30);

/// Runs until the client and its session are closed.
pub(crate) async fn supervise(shared: Arc<Shared>, task: SessionTask) {
    // Guards, pending operations and `close` learn of the end of this task, even if it panics.
    let mut aftermath = CloseOnDrop::new(&shared);
    start_reminders(&shared);
    let ended = AssertUnwindSafe(supervise_sessions(shared, task)).catch_unwind().await;
    aftermath.supervisor_ended();
    if let Err(panic) = ended {
        resume_unwind(panic);
    }
}

async fn supervise_sessions(shared: Arc<Shared>, mut task: SessionTask) {
    let mut generation = shared.generation();
    let closing_timeout = closing_timed_out(Arc::clone(&shared)).boxed().shared();
    loop {
        let end = run_generation(&shared, &generation, task, closing_timeout.clone()).await;
        generation.end(end);
        if shared.closing.is_cancelled() {
            break;
        }
        shared.instruments.session_lost(end.label());
        if end == SessionEnd::RolledBack && !continues_after_rollback(&shared) {
            return;
        }
        log_loss(&shared, &generation, end);
        let state = match end {
            SessionEnd::AuthFailed => ConnectionState::AuthFailed,
            _ => ConnectionState::Lost,
        };
        publish(&shared, &generation, state, generation.losses());
        start_reminders(&shared);
        end_at_servers(&shared, &generation, end);
        if end == SessionEnd::AuthFailed && !pause_after_refusal(&shared).await {
            break;
        }
        (generation, task) = shared.open_next(&generation, end);
    }
    if !generation.session.has_certainly_ended() {
        end_at_servers(&shared, &generation, SessionEnd::Closed);
    }
    tokio::select! {
        biased;
        () = shared.cleanup.all_ended() => {}
        () = closing_timeout => {}
    }
    // Event: A client was closed, and its session was closed at the servers or left to expire.
    tracing::info!(target: "docent::client", client = %shared.label, generation = generation.number, "client is closed");
    shared.instruments.state(ConnectionState::Closed.number());
    shared.connection.send_modify(|connection| connection.state = ConnectionState::Closed);
}

/// Closes a session at the servers, in the background. Otherwise the servers may keep it, and its nodes would
/// exist until its timeout (decision 25).
fn end_at_servers(shared: &Arc<Shared>, generation: &Arc<SessionGeneration>, end: SessionEnd) {
    if end == SessionEnd::Expired && planted!(ExpiredIsGone) {
        return;
    }
    let (id, session) = (generation.session.id(), &generation.session);
    let Some(closer) = session.closer().filter(|_| shared.notes.add_lingering(id, session.owned())) else {
        return;
    };
    let (client, ended) = (Arc::clone(shared), Arc::clone(generation));
    let after = async move {
        guards_dropped(&client, &ended, end).await;
        // The next session replaces the kept nodes of this session while this session lives, so that no
        // reader sees them missing (decision 7).
        let replaced =
            tokio::time::timeout(client.config.operation_timeout, client.kept.attempted(ended.number + 1));
        tokio::select! {
            _ = replaced => {}
            () = client.closing.cancelled() => {}
        }
    };
    let notes = Arc::clone(shared);
    shared.cleanup.end_session(closer, after.boxed(), Box::new(move || notes.notes.set_ended(id)));
}

/// Waits until the guards of a session that has ended are dropped. Until then their work may be stopping, and
/// closing the session would give their places to other clients. The wait takes at most a margin if the
/// guards may already have lost their places, and is shortened when the client is closed.
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

/// Waits, while the client closes, until the guards of a session are dropped. The wait is limited to the time
/// that the loss of a lease gives their work to stop (decision 25), and to half of the remaining time.
async fn time_to_stop(shared: &Shared, generation: &SessionGeneration) {
    tokio::select! {
        () = generation.held.all_dropped() => {}
        () = tokio::time::sleep(generation.lease.margin().min(shared.config.operation_timeout / 4)) => {}
        () = shared.stages.part_elapsed(2) => {}
    }
}

/// Resolves when the time for closing the client is up.
type ClosingTimeout = future::Shared<BoxFuture<'static, ()>>;

/// Resolves when the client is closing and has used up the operation timeout, or reached the shutdown's
/// deadline; earlier if the servers are unreachable.
async fn closing_timed_out(shared: Arc<Shared>) {
    shared.closing.cancelled().await;
    let timeout = async {
        tokio::select! {
            () = tokio::time::sleep(shared.config.operation_timeout) => {}
            () = shared.stages.part_elapsed(1) => {}
            () = servers_unreachable(&shared) => {}
        }
    };
    // On the heap, because only a client that closes needs it.
    Box::pin(timeout).await;
}

/// Counts a restore of the servers. Returns false if the client must stop.
fn continues_after_rollback(shared: &Shared) -> bool {
    let stop = shared.config.on_rollback == RollbackPolicy::Stop;
    // Event: The servers were restored from an older snapshot: their newest transaction is older than what
    // this client has seen. With `stop=true` the client stops and its guards are lost; with `stop=false` it
    // continues in a new session, and new fences may be lower than earlier ones.
    // Action: Check the resources that remember fences, because they refuse lower ones. With `stop=true`,
    // restart the process afterwards.
    tracing::error!(target: "docent::client", client = %shared.label, ?stop, "the ensemble was restored from an older snapshot (its transaction id went backwards)");
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

/// Waits until refused credentials may be tried again. Returns false if the client is closed first.
async fn pause_after_refusal(shared: &Shared) -> bool {
    let pause = REFUSED_PAUSE.mul_f64(0.75 + fastrand::f64() / 2.0);
    tokio::select! {
        () = shared.closing.cancelled() => false,
        () = tokio::time::sleep(pause) => true,
    }
}

/// Runs one session until it ends or, if the client closes, until the session is closed or `closing_timeout`
/// resolves.
async fn run_generation(
    shared: &Arc<Shared>,
    generation: &Arc<SessionGeneration>,
    mut task: SessionTask,
    closing_timeout: ClosingTimeout,
) -> SessionEnd {
    // The session's task wakes for every request, the lease and the link's state hardly ever. `PollOnWake`
    // polls these only if they were woken themselves.
    let mut attended = PollOnWake::new(attend(shared, generation, closing_timeout));
    tokio::select! {
        biased;
        end = &mut task => end,
        end = &mut attended => end,
    }
}

/// Keeps the lease and publishes the link's state beside the session's task. Resolves if the client closes
/// and `closing_timeout` resolves before the session has ended.
async fn attend(
    shared: &Arc<Shared>,
    generation: &Arc<SessionGeneration>,
    mut closing_timeout: ClosingTimeout,
) -> SessionEnd {
    let mut heartbeat = pin!(heartbeat::keep(generation));
    let mut close = pin!(close(shared, generation));
    let mut link = generation.session.link();
    // The state `Connected` is published after one attempt for each kept node, but logged before other tasks
    // can log what they do in the new session.
    let mut restored = Some(Box::pin(restored(shared, generation)));
    let mut is_logged = false;
    loop {
        let is_up = link.borrow().up;
        tokio::select! {
            // Biased so that the log reports the lost link before the guards that are lost with it.
            biased;
            Ok(()) = link.changed() => {
                let state = *link.borrow_and_update();
                is_logged = state.up;
                if state.up {
                    log_connected(shared, generation);
                }
                if restored.is_none() || !state.up {
                    publish_link(shared, generation, state);
                }
            }
            never = &mut heartbeat => match never {},
            Some(()) = OptionFuture::from(restored.as_mut()), if is_up => {
                restored = None;
                let state = *link.borrow();
                if !is_logged {
                    log_connected(shared, generation);
                }
                publish_link(shared, generation, state);
            }
            never = &mut close => match never {},
            () = &mut closing_timeout => return SessionEnd::Closed,
        }
    }
}

/// Waits for the first attempt for each kept node in a session, at most for the operation timeout. A node
/// that cannot be kept reports that on its own handle.
async fn restored(shared: &Shared, generation: &SessionGeneration) {
    let _ =
        tokio::time::timeout(shared.config.operation_timeout, shared.kept.attempted(generation.number)).await;
}

/// Waits until the client is closing, then ends the session in order: no new calls, pending deletes, guards,
/// the session itself.
async fn close(shared: &Shared, generation: &SessionGeneration) -> Infallible {
    shared.closing.cancelled().await;
    // On the heap, because it is not needed until then.
    Box::pin(close_now(shared, generation)).await;
    pending().await
}

async fn close_now(shared: &Shared, generation: &SessionGeneration) {
    let max = shared.config.operation_timeout;
    generation.session.drain();
    // Half of the time, because the end of the session cleans up more than all deletes.
    tokio::select! {
        () = shared.cleanup.drained() => {}
        () = tokio::time::sleep(max / 2) => {}
        () = shared.stages.part_elapsed(2) => {}
    }
    // Guards are lost first and the session is closed afterwards, because other clients get the locks once
    // the session is closed at the servers.
    generation.end(SessionEnd::Closed);
    if !planted!(NoMarginAtClose) {
        time_to_stop(shared, generation).await;
    }
    generation.session.close();
}

fn publish_link(shared: &Arc<Shared>, generation: &SessionGeneration, link: LinkState) {
    let state = match link.up {
        true if link.is_read_only => ConnectionState::ReadOnly,
        true => ConnectionState::Connected,
        false if link.losses > 0 => ConnectionState::Suspended,
        false => return,
    };
    if link.up {
        shared.instruments.connected();
        check_granted(shared, generation);
    } else {
        log_suspended(shared, generation);
        shared.instruments.suspended();
    }
    publish(shared, generation, state, link.losses);
    if state == ConnectionState::Suspended {
        start_reminders(shared);
    }
}

/// Publishes a state of the connection in `generation`, whose link was lost `losses` times so far.
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

/// Ends the rest of a client together with the supervisor's task, however that task ends.
///
/// # On drop
/// If the supervisor ended in order, nothing is left to do. If it panicked, or its runtime was shut down, no
/// task keeps the session any more, and none would report that. Therefore guards are lost, pending operations
/// fail, and the client is closed.
struct CloseOnDrop {
    shared: Arc<Shared>,
    /// True once the supervisor has returned or panicked. A task that is dropped before was ended by its
    /// runtime, because no other part of the client ends it.
    ended: bool,
}

impl CloseOnDrop {
    fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), ended: false }
    }

    /// Records that the supervisor has returned or panicked.
    fn supervisor_ended(&mut self) {
        self.ended = true;
    }

    fn log(&self) {
        let (shared, generation) = (&self.shared, self.shared.generation());
        if self.ended {
            // Event: The task that keeps the client's session panicked. The client is closed, its guards are
            // lost, and pending operations fail.
            // Action: Look for the panic message earlier in the log, and report it. Build a new client.
            tracing::error!(
                target: "docent::client",
                client = %shared.label,
                generation = generation.number,
                "the client's session task stopped unexpectedly; closing the client"
            );
        } else if generation.session.id() == 0 {
            // Event: The tokio runtime was shut down before the client was closed. The client had no session,
            // so no node is left.
            tracing::debug!(target: "docent::client", client = %shared.label, "runtime shut down before the client was closed");
        } else {
            // Event: The tokio runtime was shut down before the client was closed. The servers keep the
            // client's session, and with it the client's locks and registrations, for up to the session
            // timeout.
            // Action: Call `client.close().await` or `client.shutdown(…).await` before the program ends.
            tracing::warn!(
                target: "docent::client",
                client = %shared.label,
                generation = generation.number,
                session_timeout_seconds = seconds(generation.lease.timeout()),
                "runtime shut down before the client was closed; its locks and nodes remain until the session expires; call close().await first"
            );
        }
    }
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        let shared = &self.shared;
        if !shared.connection.borrow().is_final() {
            self.log();
            shared.connection.send_modify(|connection| connection.state = ConnectionState::Closed);
        }
        shared.closing.cancel();
        // The session's requests and watches have ended with the task that ran the session.
        shared.generation().end(SessionEnd::Closed);
        shared.finished.cancel();
    }
}
