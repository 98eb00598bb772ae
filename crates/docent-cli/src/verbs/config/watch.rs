use super::arguments::Watch;
use super::environment;
use super::get::print;
use crate::app::App;
use crate::child::{self, ChildCommand, Signals};
use crate::exit::{Ending, Failure, Outcome};
use bytes::Bytes;
use docent::config::{Change, Config, Snapshot};

/// Follows the value until a signal comes. A command that runs is waited for: values that were replaced
/// meanwhile are left out, and the last one never is.
pub(super) async fn run(
    app: &App,
    config: &Config<Bytes>,
    arguments: &Watch,
    signals: &mut Signals,
) -> Outcome {
    let mut subscription = signals.or(config.subscribe_when_published()).await??;
    if !arguments.changes_only {
        tell(app, config.path(), &subscription.current(), arguments, signals).await?;
    }
    loop {
        match signals.or(subscription.changed()).await? {
            None => return Ok(Ending::Done),
            Some(Ok(Change::Value(value))) => tell(app, config.path(), &value, arguments, signals).await?,
            Some(Ok(Change::Deleted)) => app.output.remark(format!("{} was deleted", config.path())),
            Some(Ok(_)) => {}
            Some(Err(error)) => app.output.remark(format!("cannot be read at present: {error}")),
        }
    }
}

/// Prints a value, or runs the command for it.
async fn tell(
    app: &App,
    path: &str,
    value: &Snapshot<Bytes>,
    arguments: &Watch,
    signals: &mut Signals,
) -> Result<(), Failure> {
    let Some(mut command) = ChildCommand::new(&arguments.command) else {
        print(app, path, value, arguments.env)?;
        return end_line(app, value, arguments.env);
    };
    let version = value.revision().map_or_else(String::new, |revision| revision.version.to_string());
    if arguments.env {
        match environment::allowed(&app.output, value.value()) {
            Ok(variables) => {
                command = variables
                    .into_iter()
                    .fold(command, |command, (name, value)| command.variable(name, value));
            }
            // One bad value ends no reload hook: it keeps what it has.
            Err(refusal) => {
                app.output.remark(format!("left out: {refusal}"));
                return Ok(());
            }
        }
    }
    let command = command.under(path, None).variable("DOCENT_VERSION", version);
    let name = command.name();
    let status = child::run(&command.with_input(value.value().clone()), signals).await?;
    signals.check_end()?;
    if !status.success() {
        app.output.remark(format!("{name:?} ended with {status}"));
    }
    Ok(())
}

/// Ends the line of a value that ends none itself, so that each one begins a line.
fn end_line(app: &App, value: &Snapshot<Bytes>, env: bool) -> Result<(), Failure> {
    let is_open = !app.output.is_json() && !env && !value.value().ends_with(b"\n");
    if is_open && !app.output.is_terminal() {
        app.output.bytes(b"\n")?;
    }
    Ok(())
}
