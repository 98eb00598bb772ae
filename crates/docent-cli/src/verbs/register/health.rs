use super::arguments::Arguments;
use crate::app::App;
use docent::discovery::Registration;
use std::cell::Cell;
use std::convert::Infallible;
use std::future::pending;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::{interval, timeout};

/// Runs the check again and again, and enables or disables the instance by what it says, unless that
/// `is_leaving`. Waits for ever where there is no check.
pub(super) async fn keep_checked(
    app: &App,
    registration: &Registration,
    arguments: &Arguments,
    is_leaving: &Cell<bool>,
) -> Infallible {
    let Some(check) = &arguments.check else { return pending().await };
    let mut ticks = interval(arguments.every.max(Duration::from_millis(10)));
    // It begins as disabled.
    let mut was_well = None;
    loop {
        ticks.tick().await;
        let result = check_once(check, arguments.every).await;
        let is_well = result.is_ok();
        if was_well == Some(is_well) || is_leaving.get() {
            continue;
        }
        if let Err(error) = registration.set_enabled(is_well).await {
            app.output.remark(format!("the state could not be told, and is told again: {error}"));
            continue;
        }
        was_well = Some(is_well);
        app.output.remark(match result {
            Ok(()) => "the check passes: enabled".to_owned(),
            Err(reason) => format!("the check fails, {reason}: disabled"),
        });
    }
}

/// Runs the check. One that takes longer than `limit` is killed.
///
/// # Errors
/// The reason why it did not end with 0 in time.
async fn check_once(check: &str, limit: Duration) -> Result<(), String> {
    let mut words = check.split_whitespace();
    let program = words.next().ok_or("it names no program")?;
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    match timeout(limit, command.status()).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("it ended with {status}")),
        Ok(Err(error)) => Err(format!("{program:?} cannot be run: {error}")),
        Err(_) => Err(format!("it took longer than {limit:?}")),
    }
}
