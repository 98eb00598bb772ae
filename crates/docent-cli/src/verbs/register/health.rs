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

/// Runs the check again and again, and enables or disables the instance by what it says, unless that leaves.
/// Waits for ever where there is no check.
pub(super) async fn keep_checked(
    app: &App,
    registration: &Registration,
    arguments: &Arguments,
    leave: &Leave<'_>,
) -> Infallible {
    let Some(check) = &arguments.check else { return pending().await };
    let path = registration.path();
    let mut ticks = interval(arguments.every.max(Duration::from_millis(10)));
    // It begins as disabled.
    let mut told = None;
    loop {
        ticks.tick().await;
        let result = check_once(check, &path, arguments.every).await;
        let is_well = result.is_ok();
        let state = (leave.stays(), is_well);
        if told == Some(state) || leave.is_leaving() {
            continue;
        }
        if let Err(error) = registration.set_enabled(is_well).await {
            app.output.remark(format!("the state could not be told, and is told again: {error}"));
            continue;
        }
        told = Some(state);
        app.output.remark(match result {
            Ok(()) => "the check passes: enabled".to_owned(),
            Err(reason) => format!("the check fails, {reason}: disabled"),
        });
    }
}

/// Runs the check. One that takes longer than `limit` is killed, with all that it has started in its group.
///
/// # Errors
/// The reason why it did not end with 0 in time.
async fn check_once(check: &str, path: &str, limit: Duration) -> Result<(), String> {
    let words: Vec<_> = check.split_whitespace().map(OsString::from).collect();
    let command = ChildCommand::new(&words).ok_or("it names no program")?.under(path, None).in_silence();
    let program = command.name();
    match run_within(&command, limit).await {
        Ok(Some(status)) if status.success() => Ok(()),
        Ok(Some(status)) if status.code() == Some(127) => Err(format!("{program:?} was not found")),
        Ok(Some(status)) => Err(format!("it ended with {status}")),
        Ok(None) => Err(format!("it took longer than {limit:?}")),
        Err(failure) => Err(failure.to_string()),
    }
}
