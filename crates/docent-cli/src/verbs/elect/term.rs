use crate::app::App;
use crate::child::{ChildCommand, CommandExit, Finished, KillPolicy, Signals, run_held};
use crate::exit::{Ending, Failure};
use crate::verbs::lock::{HeldLine, revoked_message};
use docent::election::Leadership;

/// End of a term.
#[derive(Debug)]
pub(super) enum Term {
    /// The command ended, or its end does not depend on the term.
    Done(CommandExit),
    /// Another client asked the leader to leave, and the command ended.
    Revoked(CommandExit),
    /// The command was asked to stop or cannot be run: there will be no further term.
    Stopped(Ending),
    /// The leadership was lost.
    Lost(String),
}

/// Runs the command for one term. Without a command, leads until a signal comes or another client asks it to
/// leave.
pub(super) async fn lead(
    app: &App,
    path: &str,
    leadership: Leadership,
    command: Option<&ChildCommand>,
    policy: KillPolicy,
    signals: &mut Signals,
) -> Result<Term, Failure> {
    let fence = leadership.fence();
    let Some(command) = command else {
        HeldLine { path, fence: Some(fence) }.print(&app.output)?;
        return Ok(tokio::select! {
            _ = signals.next() => Term::Stopped(Ending::Done),
            () = leadership.revoked() => {
                app.output.remark(revoked_message(path));
                Term::Stopped(Ending::Done)
            }
            reason = leadership.lost() => Term::Lost(format!("the leadership of {path:?} was lost: {reason}")),
        });
    };
    let command = command.clone().under(path, Some(fence));
    let finished = run_held(leadership, &command, policy, &app.output, signals).await?;
    if finished.revoked {
        app.output.remark(revoked_message(path));
    }
    Ok(end(path, policy, &finished))
}

fn end<G>(path: &str, policy: KillPolicy, finished: &Finished<G>) -> Term {
    match &finished.lost {
        _ if finished.was_stopped() || finished.exit.was_not_run() => {
            Term::Stopped(Ending::Child(finished.exit))
        }
        Some(reason) if policy.ends_command() => {
            Term::Lost(format!("the leadership of {path:?} was lost: {reason}"))
        }
        _ if finished.revoked => Term::Revoked(finished.exit),
        _ => Term::Done(finished.exit),
    }
}
