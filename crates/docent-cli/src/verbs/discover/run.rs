use super::arguments::Arguments;
use super::{checks, follow, shown};
use crate::app::App;
use crate::child::Signals;
use crate::exit::{Ending, Failure, Outcome};
use docent::discovery::Registry;
use serde::Serialize;
use serde_json::Value;

#[derive(Debug, Serialize)]
struct ServiceName<'a> {
    path: String,
    service: &'a str,
}

/// Lists services or instances, and follows them if requested.
pub(crate) async fn run(app: &App, arguments: &Arguments) -> Outcome {
    checks::check(app, arguments)?;
    app.with_signals(async |client, signals| {
        let registry = Registry::builder(client, &arguments.root).layout(arguments.layout.into()).build()?;
        match &arguments.service {
            Some(name) => instances(app, &registry, name, arguments, signals).await,
            None => signals.or(names(app, &registry, arguments)).await?,
        }
    })
    .await
}

async fn names(app: &App, registry: &Registry, arguments: &Arguments) -> Outcome {
    for service in &registry.names().await? {
        match app.output.is_json() {
            true => app.output.json(&ServiceName { path: arguments.path_of(service), service })?,
            false => app.output.line(service)?,
        }
    }
    Ok(Ending::Done)
}

async fn instances(
    app: &App,
    registry: &Registry,
    name: &str,
    arguments: &Arguments,
    signals: &mut Signals,
) -> Outcome {
    let service = signals.or(registry.typed_service::<Value>(name)).await??;
    if arguments.watch || arguments.write.is_some() || !arguments.exec.is_empty() {
        return follow::run(app, &service, arguments, signals).await;
    }
    let instances = service.instances();
    shown::print(app, name, &instances, arguments)?;
    let enabled = instances.len();
    if enabled == 0 && !signals.or(registry.names()).await??.iter().any(|known| known == name) {
        return Err(Failure::not_found(format!("there is no service {name:?} below {}", arguments.root)));
    }
    match arguments.at_least {
        Some(wanted) if enabled < wanted => Err(Failure::not_acquired(format!(
            "{enabled} instances of {name:?} may be given work, fewer than {wanted}"
        ))),
        _ => Ok(Ending::Done),
    }
}
