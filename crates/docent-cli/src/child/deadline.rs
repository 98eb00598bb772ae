use super::countdown::{Countdown, Step};
use super::group::Group;
use super::keeper::KeeperLine;
use super::on_lost::KillPolicy;
use docent::time::{BootClock, Clock, Timestamp};
use rustix::process::Signal;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::sync::watch;

/// Longest time that a timer is trusted: it stands still while the machine is suspended.
const LOOK: Duration = Duration::from_secs(1);

/// Part of the lease that is left after which the keeper is told how much it is then.
const LOOKS: u32 = 8;

/// Shortest time between two looks, but for those that a step needs.
const SHORTEST: Duration = Duration::from_millis(50);

/// Ends a command before its lease is over, from a thread of its own: nothing that the program does can make
/// it late, and after a pause of the process it comes before anything else.
///
/// # On drop
/// The command is not ended any more.
#[derive(Debug)]
pub(super) struct Deadline {
    told: watch::Receiver<bool>,
    bell: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Deadline {
    /// Begins to look at the lease that is left for `group`. Its keeper is told whenever that is renewed.
    pub(super) fn start(
        policy: KillPolicy,
        group: Arc<Group>,
        keeper: KeeperLine,
        left: impl Fn() -> Duration + Send + 'static,
    ) -> io::Result<Self> {
        let (tell, told) = watch::channel(false);
        let (bell, rung) = channel();
        let look = move || keep(policy, &group, &keeper, left, &rung, &tell);
        let thread = thread::Builder::new().name("docent-deadline".into()).spawn(look)?;
        Ok(Self { told, bell: Some(bell), thread: Some(thread) })
    }

    /// Time at which a command that is not started yet is to be killed, if nobody looks at it until then.
    pub(super) fn kill_by(policy: KillPolicy, left: Duration) -> Timestamp {
        Countdown::new(policy, BootClock.now(), left).kill_by()
    }

    /// Lets it look at once, because the guard is lost.
    pub(super) fn look(&self) {
        if let Some(bell) = &self.bell {
            // It may have killed the command already.
            let _ = bell.send(());
        }
    }

    /// Resolves when the command was told to stop.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub(super) async fn told(&mut self) {
        if self.told.wait_for(|told| *told).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Ends it, and says whether the command was told to stop.
    pub(super) fn end(mut self) -> bool {
        self.stop();
        *self.told.borrow()
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

/// Looks until the bell is gone, or the command was killed.
fn keep(
    policy: KillPolicy,
    group: &Group,
    keeper: &KeeperLine,
    left: impl Fn() -> Duration,
    bell: &Receiver<()>,
    tell: &watch::Sender<bool>,
) {
    let mut countdown = Countdown::new(policy, BootClock.now(), left());
    loop {
        let left = left();
        let step = countdown.step(BootClock.now(), left);
        keeper.kill_by(countdown.kill_by());
        let wait = match step {
            // The keeper knows of each renewal soon: it is not to kill after a pause that the lease outlives.
            Step::Wait(wait) => wait.min(LOOK).min((left / LOOKS).max(SHORTEST)),
            step => {
                group.pass_on(if step == Step::Kill { Signal::KILL } else { Signal::TERM });
                tell.send_replace(true);
                if step == Step::Kill {
                    return;
                }
                continue;
            }
        };
        if let Err(RecvTimeoutError::Disconnected) = bell.recv_timeout(wait) {
            return;
        }
    }
}
