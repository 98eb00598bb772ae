use super::arguments::{Env, Get};
use super::environment;
use super::failure::missing;
use super::shown::Shown;
use crate::app::App;
use crate::exit::{Ending, Failure, Outcome};
use bytes::Bytes;
use docent::config::{Config, Snapshot};

/// Prints the current value.
pub(super) async fn run(app: &App, config: &Config<Bytes>, arguments: &Get) -> Outcome {
    let snapshot = config.get().await?.ok_or_else(|| missing(config.path()))?;
    print(app, config.path(), &snapshot, &arguments.env)?;
    Ok(Ending::Done)
}

/// Prints a value as JSON, as variables, or as bytes. On a terminal its lines are escaped; otherwise its
/// bytes are written unchanged.
pub(super) fn print(app: &App, path: &str, snapshot: &Snapshot<Bytes>, env: &Env) -> Result<(), Failure> {
    let output = &app.output;
    let value: &[u8] = snapshot.value();
    if env.is_wanted() {
        output.bytes(environment::lines(&env.variables(output, value)?)?.as_bytes())?;
    } else if output.is_json() {
        output.json(&Shown::of(path, snapshot))?;
    } else if output.is_terminal() {
        let text = String::from_utf8_lossy(value);
        text.lines().try_for_each(|line| output.line(line))?;
    } else {
        output.bytes(value)?;
    }
    Ok(())
}
