use super::countdown::{Countdown, Step};
use super::group::Group;
use super::keeper::KeeperLine;
use super::on_lost::KillPolicy;
use docent::time::{BootClock, Clock, Timestamp};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::sync::watch;

/// Longest time that a timer is trusted, because it pauses while the machine is suspended.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Part of the remaining lease after which the keeper receives the new end of the lease.
const CHECKS_PER_LEASE: u32 = 8;

/// Shortest time between two checks, unless a step needs an earlier one.
const SHORTEST: Duration = Duration::from_millis(50);

/// Ends a command before its lease ends. It runs on its own thread, so nothing else in the program can delay
/// it, and after a pause of the process it runs before anything else.
///
/// # On drop
/// Stops watching; the command is no longer ended.
#[derive(Debug)]
pub(super) struct Deadline {
    stop_requested: watch::Receiver<bool>,
    bell: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Deadline {
    /// Starts watching the lease that is left for `group`. Whenever the lease is renewed, the keeper receives
    /// its new end.
    pub(super) fn start(
        policy: KillPolicy,
        group: Arc<Group>,
        keeper: KeeperLine,
        lease_left: impl Fn() -> Duration + Send + 'static,
    ) -> io::Result<Self> {
        let (stop_sender, stop_requested) = watch::channel(false);
        let (bell, rung) = channel();
        let body = move || keep(policy, &group, &keeper, lease_left, &rung, &stop_sender);
        let thread = thread::Builder::new().name("docent-deadline".into()).spawn(body)?;
        Ok(Self { stop_requested, bell: Some(bell), thread: Some(thread) })
    }

    /// Returns the time at which a command that has not started yet must be killed, if nothing checks it
    /// until then.
    pub(super) fn kill_by(policy: KillPolicy, lease_left: impl FnOnce() -> Duration) -> Timestamp {
        // The time is read first: a pause in between then shortens the lease.
        let now = BootClock.now();
        Countdown::new(policy, now, lease_left()).kill_by()
    }

    /// Triggers a check immediately, because the guard was lost.
    pub(super) fn check_now(&self) {
        if let Some(bell) = &self.bell {
            // The thread may have killed the command and ended already.
            let _ = bell.send(());
        }
    }

    /// Resolves when the command was asked to stop.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub(super) async fn stop_requested(&mut self) {
        if self.stop_requested.wait_for(|stop_requested| *stop_requested).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Stops watching, and returns whether the command was asked to stop.
    pub(super) fn end(mut self) -> bool {
        self.stop();
        *self.stop_requested.borrow()
    }

    fn stop(&mut self) {
        self.bell = None;
        self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Checks the lease until the bell is dropped or the command was killed.
fn keep(
    policy: KillPolicy,
    group: &Group,
    keeper: &KeeperLine,
    lease_left: impl Fn() -> Duration,
    bell: &Receiver<()>,
    stop_sender: &watch::Sender<bool>,
) {
    let mut countdown = Countdown::new(policy, BootClock.now(), lease_left());
    loop {
        // The time is read first: a pause in between then shortens the lease.
        let now = BootClock.now();
        let lease_left = lease_left();
        let step = countdown.step(now, lease_left);
        keeper.kill_by(countdown.kill_by());
        let wait = match step {
            // The keeper learns of each renewal soon, so that it does not kill the command after a pause that
            // the lease outlives.
            Step::Wait(wait) => wait.min(MAX_WAIT).min((lease_left / CHECKS_PER_LEASE).max(SHORTEST)),
            step => {
                if step == Step::Kill {
                    group.kill();
                    stop_sender.send_replace(true);
                    return;
                }
                group.stop();
                stop_sender.send_replace(true);
                continue;
            }
        };
        if let Err(RecvTimeoutError::Disconnected) = bell.recv_timeout(wait) {
            return;
        }
    }
}
