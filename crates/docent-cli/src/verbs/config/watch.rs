use super::arguments::{Env, Watch};
use super::get::print;
use crate::app::App;
use crate::child::{ChildCommand, Signals};
use crate::exit::{Ending, Failure, FailureKind, Outcome};
use crate::output::Deleted;
use bytes::Bytes;
use docent::config::{Change, Config, Snapshot};
use std::ops::ControlFlow;

/// Follows the value until a signal comes. A running command is awaited: values that were replaced meanwhile
/// are skipped, the last value never is.
pub(super) async fn run(
    app: &App,
    config: &Config<Bytes>,
    arguments: &Watch,
    signals: &mut Signals,
) -> Outcome {
    let mut subscription = signals.or(config.subscribe_when_published()).await??;
    let mut next = (!arguments.changes_only).then(|| subscription.current());
    loop {
        if let Some(value) = next.take()
            && let ControlFlow::Break(ending) =
                handle_value(app, config.path(), &value, arguments, signals).await?
        {
            return Ok(ending);
        }
        match signals.or(subscription.changed()).await? {
            None => return Ok(Ending::Done),
            Some(Ok(Change::Value(value))) => next = Some(value),
            Some(Ok(Change::Deleted)) => print_deleted(app, config.path(), arguments)?,
            Some(Ok(_)) => {}
            Some(Err(error)) => app.output.remark(format!("cannot read the value; retrying: {error}")),
        }
    }
}

/// Reports that the value was deleted. The command is not run: it keeps what it has.
fn print_deleted(app: &App, path: &str, arguments: &Watch) -> Result<(), Failure> {
    if app.output.is_json() && !arguments.env.is_wanted() && arguments.command.is_empty() {
        app.output.json(&Deleted::new(path))?;
    } else {
        app.output.remark(format!("{path} was deleted"));
    }
    Ok(())
}

/// Prints a value, or runs the command for it.
async fn handle_value(
    app: &App,
    path: &str,
    value: &Snapshot<Bytes>,
    arguments: &Watch,
    signals: &mut Signals,
) -> Result<ControlFlow<Ending>, Failure> {
    let Some(mut command) = ChildCommand::new(&arguments.command) else {
        show(app, path, value, &arguments.env)?;
        return Ok(ControlFlow::Continue(()));
    };
    let version = value.revision().map_or_else(String::new, |revision| revision.version.to_string());
    if arguments.env.is_wanted() {
        match arguments.env.variables(&app.output, value.value()) {
            Ok(variables) => {
                command = variables
                    .into_iter()
                    .fold(command, |command, (name, value)| command.variable(name, value));
            }
            Err(refusal) => {
                skip(app, refusal)?;
                return Ok(ControlFlow::Continue(()));
            }
        }
    }
    let command = command.under(path, None).variable("DOCENT_VERSION", version);
    app.run_hook(&command.with_input(value.value().clone()), signals).await
}

/// Prints a value.
fn show(app: &App, path: &str, value: &Snapshot<Bytes>, env: &Env) -> Result<(), Failure> {
    match print(app, path, value, env) {
        Ok(()) => end_line(app, value, env.is_wanted()),
        Err(refusal) => skip(app, refusal),
    }
}

/// Skips a value that cannot be converted to variables: one bad value must not end a reload hook, which keeps
/// what it has.
fn skip(app: &App, refusal: Failure) -> Result<(), Failure> {
    if refusal.kind() != FailureKind::BadData {
        return Err(refusal);
    }
    app.output.remark(format!("skipped a value: {refusal}"));
    Ok(())
}

/// Ends the line of a value that does not end with a newline, so that each value starts on its own line.
fn end_line(app: &App, value: &Snapshot<Bytes>, env: bool) -> Result<(), Failure> {
    let is_open = !app.output.is_json() && !env && !value.value().ends_with(b"\n");
    if is_open && !app.output.is_terminal() {
        app.output.bytes(b"\n")?;
    }
    Ok(())
}
