use super::deadline::Deadline;
use super::job_control;
use super::lost_pipe::LostPipe;
use super::members;
use super::running::{Bond, Collected, Left, Running};
use super::{ChildCommand, CommandExit, KillPolicy, Signals};
use crate::exit::Failure;
use crate::output::Output;
use docent::guard::Guard;
use rustix::process::Signal;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// End of a command that ran under a guard.
#[derive(Debug)]
pub(crate) struct Finished<G> {
    /// Guard, which may be lost.
    pub(crate) guard: G,
    /// End of the command.
    pub(crate) exit: CommandExit,
    /// Reason why the guard was lost, or was about to be lost, while the command ran.
    pub(crate) lost: Option<String>,
    /// True if another client asked the holder to leave.
    pub(crate) revoked: bool,
    /// Signals that were passed on, or typed at the command's terminal.
    passed_on: Vec<Signal>,
}

impl<G> Finished<G> {
    /// Returns true if the command was asked to stop, by docent or from its terminal, and did. Signals other
    /// than SIGTERM and SIGINT may mean something else to the command; they count only if the command ended
    /// by them.
    pub(crate) fn was_stopped(&self) -> bool {
        let ended_by = |signal: &Signal| {
            let number = signal.as_raw();
            self.exit.signal() == Some(number) || self.exit.code() == Some(128 + number)
        };
        let typed =
            [Signal::INT, Signal::QUIT].iter().any(|signal| self.exit.signal() == Some(signal.as_raw()));
        let ends = |signal: &Signal| [Signal::TERM, Signal::INT].contains(signal);
        typed || self.passed_on.iter().any(|signal| ends(signal) || ended_by(signal))
    }
}

/// Runs a command while `guard` is held, and passes signals on to it. When the lease is about to end, the
/// command is asked to stop and then killed, as `policy` says: it is dead before another client can hold the
/// lock. The command also gets SIGTERM when another client asks the holder to leave. The command includes all
/// processes that it starts. If one cannot be killed, that is reported, and the guard is held until it ends,
/// is lost, or a signal asks for the end.
///
/// # Errors
/// `NotRunnable` if no process can be created.
///
/// # Cancel safety
/// Dropping the future kills the command and then releases the guard.
pub(crate) async fn run_held<G: Guard + 'static>(
    guard: G,
    command: &ChildCommand,
    policy: KillPolicy,
    output: &Output,
    signals: &mut Signals,
) -> Result<Finished<G>, Failure> {
    let guard = Arc::new(guard);
    signals.listen_for_suspend()?;
    let pipe = LostPipe::new().ok();
    // It may wait for processes that a killed docent has left, and the lease must be renewed meanwhile.
    let prepared = spawn_blocking(members::prepare).await;
    let mark = prepared.map_err(|error| Failure::other(format!("cannot prepare the command: {error}")))?;
    let kill_by = policy.ends_command().then(|| Deadline::kill_by(policy, || guard.lease_left()));
    let bond = Bond { lost: pipe.as_ref(), kill_by, mark: Some(mark) };
    let running = Running::start(command, bond)?;
    let deadline = deadline(&guard, policy, &running)?;
    let mut supervision = Supervision {
        guard: &*guard,
        running,
        deadline,
        pipe,
        lost: None,
        revoked: false,
        passed_on: Vec::new(),
    };
    supervision.until_ended(signals).await;
    // The guard is still held, and the deadline still watches it.
    let (signal, left) = supervision.running.end_rest(policy.kill_after, signals).await;
    supervision.passed_on.extend(signal);
    if let Some(left) = left {
        supervision.until_rest_ended(&left, output, signals).await;
    }
    let Supervision { running, mut lost, revoked, mut passed_on, .. } = supervision.end().await;
    let Collected { exit, is_overdue, typed } = running.collect()?;
    passed_on.extend(typed);
    if is_overdue {
        lost.get_or_insert_with(|| "docent was stalled for too long".to_owned());
    }
    let guard = Arc::into_inner(guard).expect("the deadline's thread, which shared the guard, has ended");
    Ok(Finished { guard, exit, lost, revoked, passed_on })
}

/// Command that runs under a guard, and what supervises it.
struct Supervision<'a, G> {
    guard: &'a G,
    running: Running,
    /// `None` if the command may run without the guard, and once the command has ended.
    deadline: Option<Deadline>,
    /// `None` once the command has been notified.
    pipe: Option<LostPipe>,
    lost: Option<String>,
    revoked: bool,
    passed_on: Vec<Signal>,
}

impl<G: Guard> Supervision<'_, G> {
    /// Passes signals and the loss of the guard on, until the command has ended.
    async fn until_ended(&mut self, signals: &mut Signals) {
        let mut stop_requested = false;
        loop {
            tokio::select! {
                biased;
                () = until_stop_requested(&mut self.deadline), if !stop_requested => {
                    stop_requested = true;
                    self.pipe = None;
                }
                reason = self.guard.lost(), if self.lost.is_none() => {
                    self.lost = Some(reason.to_string());
                    self.pipe = None;
                    self.deadline.iter().for_each(Deadline::check_now);
                }
                () = self.running.ended() => return,
                signal = signals.next() => self.pass_on(signal),
                () = self.guard.revoked(), if !self.revoked => {
                    self.revoked = true;
                    self.running.group().pass_on(Signal::TERM);
                }
            }
        }
    }

    fn pass_on(&mut self, signal: Signal) {
        if signal == Signal::TSTP {
            return job_control::suspend(self.running.group());
        }
        self.running.group().pass_on(signal);
        if !self.passed_on.contains(&signal) {
            self.passed_on.push(signal);
        }
    }

    /// Waits for processes that could not be killed, such as those of another user, or that may exist, as
    /// long as the guard is held and no signal asks for the end.
    async fn until_rest_ended(&mut self, left: &Left, output: &Output, signals: &mut Signals) {
        let (name, problem) = match left {
            Left::Process(process) => {
                let name = format!("process {} ({}) of the command", process.number, process.name());
                (name.clone(), format!("cannot kill {name}; waiting until it ends"))
            }
            Left::Unknown(error) => (
                "a process of the command".to_owned(),
                format!("cannot list the processes of the command: {error}; waiting until this is possible"),
            ),
        };
        if self.lost.is_none() {
            output.remark(problem);
            tokio::select! {
                () = self.running.rest_killed() => return,
                reason = self.guard.lost() => self.lost = Some(reason.to_string()),
                signal = signals.next_end_request(self.running.group()) => self.passed_on.push(signal),
            }
            self.running.group().kill();
        }
        output.remark(format!("{name} may still be running after docent's end: docent cannot kill it"));
    }

    /// Determines whether the guard was held to the end. The end of the command was not collected yet.
    async fn end(mut self) -> Self {
        if !self.guard.is_held() && self.lost.is_none() {
            self.lost = Some(self.guard.lost().await.to_string());
        }
        if self.deadline.take().is_some_and(Deadline::end) {
            // Kill the processes that the command left.
            self.running.group().kill();
            self.lost.get_or_insert_with(|| "no write was acknowledged for too long".to_owned());
        }
        self
    }
}

/// Starts the deadline of a command, unless the command may run without the guard.
fn deadline<G: Guard + 'static>(
    guard: &Arc<G>,
    policy: KillPolicy,
    running: &Running,
) -> Result<Option<Deadline>, Failure> {
    if !policy.ends_command() {
        return Ok(None);
    }
    let (held, group) = (Arc::clone(guard), Arc::clone(running.group()));
    let weak = Arc::downgrade(guard);
    group.bind(move || weak.upgrade().is_some_and(|guard| guard.is_held()));
    let deadline = Deadline::start(policy, group, running.keeper_line(), move || held.lease_left());
    deadline.map(Some).map_err(|error| Failure::other(format!("cannot start a thread: {error}")))
}

/// Resolves when the command was asked to stop.
async fn until_stop_requested(deadline: &mut Option<Deadline>) {
    match deadline {
        Some(deadline) => deadline.stop_requested().await,
        None => std::future::pending().await,
    }
}
