use super::arguments::Arguments;
use super::shown::{self, ShownService};
use crate::app::App;
use crate::child::{self, ChildCommand, Signals};
use crate::exit::{Ending, Failure, Outcome};
use docent::discovery::{Instances, Service};
use futures_util::{FutureExt, StreamExt};
use serde_json::Value;

/// Tells the instances now and after each change, until a signal comes.
pub(super) async fn run(
    app: &App,
    service: &Service<Value>,
    arguments: &Arguments,
    signals: &mut Signals,
) -> Outcome {
    let mut changes = service.changes();
    let mut told = None;
    loop {
        // What came together is told together.
        while changes.next().now_or_never().flatten().is_some() {}
        let instances = service.instances();
        let now = serde_json::to_string(&ShownService::new(service.name(), &instances))
            .map_err(|error| Failure::other(format!("cannot write the instances: {error}")))?;
        if told.as_ref() != Some(&now) {
            tell(app, service, &instances, arguments, signals).await?;
            told = Some(now);
        }
        match signals.or(changes.next()).await? {
            None => return Ok(Ending::Done),
            Some(Err(error)) => app.output.remark(format!("cannot be listed at present: {error}")),
            Some(Ok(_)) => {}
        }
    }
}

async fn tell(
    app: &App,
    service: &Service<Value>,
    instances: &Instances<Value>,
    arguments: &Arguments,
    signals: &mut Signals,
) -> Result<(), Failure> {
    let Some(command) = ChildCommand::new(&arguments.exec) else {
        return match app.output.is_json() {
            true => Ok(app.output.json(&ShownService::new(service.name(), instances))?),
            false => shown::print(app, instances),
        };
    };
    let path = format!("{}/{}", arguments.root.trim_end_matches('/'), service.name());
    let name = command.name();
    let command = command.under(&path, None).with_input(shown::lines(app, instances).into());
    let status = child::run(&command, signals).await?;
    signals.check_end()?;
    if !status.success() {
        app.output.remark(format!("{name:?} ended with {status}"));
    }
    Ok(())
}
