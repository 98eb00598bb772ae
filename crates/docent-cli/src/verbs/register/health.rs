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
    let mut was_well = false;
    loop {
        ticks.tick().await;
        let is_well = passes(check, arguments.every).await;
        if is_well == was_well || is_leaving.get() {
            continue;
        }
        match registration.set_enabled(is_well).await {
            Ok(()) => {
                was_well = is_well;
                app.output.remark(if is_well {
                    "the check passes: enabled"
                } else {
                    "the check fails: disabled"
                });
            }
            Err(error) => {
                app.output.remark(format!("the state could not be told, and is told again: {error}"));
            }
        }
    }
}

/// True when the check ends with 0 in time. One that takes longer is killed.
async fn passes(check: &str, limit: Duration) -> bool {
    let mut words = check.split_whitespace();
    let Some(program) = words.next() else { return false };
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    matches!(timeout(limit, command.status()).await, Ok(Ok(status)) if status.success())
}
