use super::arguments::Arguments;
use super::leave::Leave;
use crate::app::App;
use crate::child::{ChildCommand, run_within};
use docent::discovery::Registration;
use std::convert::Infallible;
use std::ffi::OsString;
use std::future::pending;
use std::time::Duration;
use tokio::time::interval;

/// Runs the check periodically, and enables or disables the instance accordingly, unless the instance is
/// leaving. Never returns; without a check it waits forever.
pub(super) async fn keep_checked(
    app: &App,
    registration: &Registration,
    arguments: &Arguments,
    leave: &Leave<'_>,
) -> Infallible {
    let Some(check) = &arguments.check else { return pending().await };
    let path = registration.path();
    let mut ticks = interval(arguments.every.max(Duration::from_millis(10)));
    // The instance is announced as disabled.
    let mut published = None;
    loop {
        ticks.tick().await;
        let result = check_once(check, &path, arguments.every).await;
        let is_well = result.is_ok();
        let state = (leave.survivals(), is_well);
        if published == Some(state) || leave.is_leaving() {
            continue;
        }
        if let Err(error) = registration.set_enabled(is_well).await {
            app.output.remark(format!("cannot update the state of the instance; retrying: {error}"));
            continue;
        }
        published = Some(state);
        app.output.remark(match result {
            Ok(()) => "the check passed; instance enabled".to_owned(),
            Err(reason) => format!("the check failed ({reason}); instance disabled"),
        });
    }
}

/// Runs the check. A check that takes longer than `limit` is killed together with its process group.
///
/// # Errors
/// The reason why the check did not end with 0 in time.
async fn check_once(check: &str, path: &str, limit: Duration) -> Result<(), String> {
    let words: Vec<_> = check.split_whitespace().map(OsString::from).collect();
    let command = ChildCommand::new(&words).ok_or("no program is named")?.under(path, None).without_output();
    let program = command.name();
    match run_within(&command, limit).await {
        Ok(Some(exit)) if exit.success() => Ok(()),
        Ok(Some(exit)) if exit.was_not_run() && exit.code() == Some(127) => {
            Err(format!("{program:?} was not found"))
        }
        Ok(Some(exit)) => Err(format!("ended with {exit}")),
        Ok(None) => Err(format!("took longer than {limit:?}")),
        Err(failure) => Err(failure.to_string()),
    }
}
