use super::arguments::Arguments;
use super::shown::{self, ShownService};
use crate::app::App;
use crate::args::Format;
use crate::child::{ChildCommand, Signals};
use crate::exit::{Ending, Failure, Outcome};
use docent::discovery::{Instances, Service};
use futures_util::{FutureExt, StreamExt};
use serde_json::Value;
use std::ops::ControlFlow;

/// Reports the instances now and after each change, until a signal comes.
pub(super) async fn run(
    app: &App,
    service: &Service<Value>,
    arguments: &Arguments,
    signals: &mut Signals,
) -> Outcome {
    let mut changes = service.changes();
    let mut printed = None;
    loop {
        // Changes that arrived together are reported together.
        while changes.next().now_or_never().flatten().is_some() {}
        let instances = service.instances();
        let now = serde_json::to_string(&ShownService::new(service.name(), &instances))
            .map_err(|error| Failure::other(format!("cannot serialize the instances: {error}")))?;
        if printed.as_ref() != Some(&now) {
            if let ControlFlow::Break(ending) =
                handle_instances(app, service, &instances, arguments, signals).await?
            {
                return Ok(ending);
            }
            printed = Some(now);
        }
        match signals.or(changes.next()).await? {
            None => return Ok(Ending::Done),
            Some(Err(error)) => app.output.remark(format!("cannot list the instances; retrying: {error}")),
            Some(Ok(_)) => {}
        }
    }
}

async fn handle_instances(
    app: &App,
    service: &Service<Value>,
    instances: &Instances<Value>,
    arguments: &Arguments,
    signals: &mut Signals,
) -> Result<ControlFlow<Ending>, Failure> {
    let Some(command) = ChildCommand::new(&arguments.exec) else {
        print(app, service, instances)?;
        return Ok(ControlFlow::Continue(()));
    };
    let path = format!("{}/{}", arguments.root.trim_end_matches('/'), service.name());
    let command = command.under(&path, None).with_input(shown::lines(app, instances).into());
    app.run_hook(&command, signals).await
}

/// Prints all instances. An empty line after `host:port` lines marks the end of the list.
fn print(app: &App, service: &Service<Value>, instances: &Instances<Value>) -> Result<(), Failure> {
    if app.output.is_json() {
        return Ok(app.output.json(&ShownService::new(service.name(), instances))?);
    }
    shown::print(app, instances)?;
    if app.output.format() == Format::Hostport {
        app.output.line("")?;
    }
    Ok(())
}
