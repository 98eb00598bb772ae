use super::arguments::{Action, Arguments};
use super::{list, use_context};
use crate::app::App;
use crate::exit::{Ending, Failure, Outcome};
use serde::Serialize;

/// The current context, as shown in JSON.
#[derive(Debug, Serialize)]
struct Current<'a> {
    name: &'a str,
}

/// Runs the requested action. No server is contacted.
pub(crate) fn run(app: &App, arguments: &Arguments) -> Outcome {
    let file = app.global.contexts()?;
    match &arguments.action {
        Action::List => list::run(app, &file)?,
        Action::Current => {
            let name = file.contexts.current_name().ok_or_else(|| Failure::other("no context is current"))?;
            match app.output.is_json() {
                true => app.output.json(&Current { name })?,
                false => app.output.line(name)?,
            }
        }
        Action::Use { name } => use_context::run(app, &file, name)?,
    }
    Ok(Ending::Done)
}
