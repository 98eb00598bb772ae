use super::arguments::Arguments;
use super::list::List;
use crate::app::App;
use crate::args::Format;
use crate::exit::Failure;
use crate::output::{Table, utc};
use docent::discovery::{Instance, Instances};
use serde::Serialize;
use serde_json::Value;
use std::time::{Duration, UNIX_EPOCH};

/// All instances of a service, as shown in JSON while they are followed.
#[derive(Debug, Serialize)]
pub(super) struct ShownService<'a> {
    path: &'a str,
    service: &'a str,
    instances: Vec<ShownInstance<'a>>,
}

/// An instance as shown in JSON, with the fields that it has in a report of `inspect`.
#[derive(Debug, Serialize)]
struct ShownInstance<'a> {
    path: &'a str,
    service: &'a str,
    node: &'a str,
    state: &'static str,
    id: &'a str,
    address: Option<&'a str>,
    port: Option<u16>,
    ssl_port: Option<u16>,
    weight: Option<u32>,
    service_type: &'static str,
    registered_at_ms: i64,
    payload: Option<ShownPayload<'a>>,
}

/// A payload as shown in JSON. Unlike a report, `discover` shows it completely.
#[derive(Debug, Serialize)]
struct ShownPayload<'a> {
    bytes: usize,
    json: &'a Value,
    text: Option<&'a str>,
}

impl<'a> ShownInstance<'a> {
    fn new(path: &'a str, service: &'a str, node: &'a str, instance: &'a Instance<Value>) -> Self {
        let payload = instance.payload.as_ref();
        Self {
            path,
            service,
            node,
            state: state(instance),
            id: &instance.id,
            address: instance.address.as_deref(),
            port: instance.port,
            ssl_port: instance.ssl_port,
            weight: instance.weight,
            service_type: instance.service_type.name(),
            registered_at_ms: instance.registered_at_ms,
            payload: payload.map(|json| ShownPayload { bytes: json.to_string().len(), json, text: None }),
        }
    }
}

impl<'a> ShownService<'a> {
    pub(super) fn new(path: &'a str, service: &'a str, instances: &'a Instances<Value>) -> Self {
        let all = instances.all();
        let instances =
            all.map(|(node, instance)| ShownInstance::new(path, service, node, instance)).collect();
        Self { path, service, instances }
    }
}

/// Prints the instances as a table, as JSON with one instance per line, or as a [`List`]. Unreadable nodes
/// are reported on standard error.
pub(super) fn print(
    app: &App,
    name: &str,
    instances: &Instances<Value>,
    arguments: &Arguments,
) -> Result<(), Failure> {
    match app.output.format() {
        Format::Json | Format::Yaml => {
            let path = &arguments.path_of(name);
            for (node, instance) in instances.all() {
                app.output.json(&ShownInstance::new(path, name, node, instance))?;
            }
        }
        Format::Hostport | Format::FileSd => {
            app.output.bytes(List::new(app, name, instances, arguments)?.text.as_bytes())?;
        }
        Format::Table | Format::Wide => app.output.table(&table(instances, app.output.is_wide()))?,
    }
    report_unreadable(app, instances);
    Ok(())
}

/// Reports the nodes that cannot be read as instances on standard error.
pub(super) fn report_unreadable(app: &App, instances: &Instances<Value>) {
    for unreadable in instances.unreadable() {
        app.output.remark(format!("cannot read node {:?}: {}", unreadable.id, unreadable.reason));
    }
}

fn table(instances: &Instances<Value>, is_wide: bool) -> Table {
    let mut table = match is_wide {
        true => Table::new(["ID", "ADDRESS", "STATE", "WEIGHT", "TYPE", "SSL PORT", "REGISTERED", "PAYLOAD"]),
        false => Table::new(["ID", "ADDRESS", "STATE", "WEIGHT", "PAYLOAD"]),
    };
    for (id, instance) in instances.all() {
        let number = |number: Option<u32>| number.map_or_else(String::new, |number| number.to_string());
        let authority = instance.authority().unwrap_or_default();
        let mut row = vec![id.to_owned(), authority, state(instance).to_owned(), number(instance.weight)];
        if is_wide {
            let registered = u64::try_from(instance.registered_at_ms).unwrap_or_default();
            let registered = utc(UNIX_EPOCH + Duration::from_millis(registered));
            let ssl_port = number(instance.ssl_port.map(u32::from));
            row.extend([instance.service_type.name().to_owned(), ssl_port, registered]);
        }
        let payload = instance.payload.as_ref().filter(|payload| !payload.is_null());
        row.push(payload.map_or_else(String::new, Value::to_string));
        table.row(row);
    }
    table
}

fn state(instance: &Instance<Value>) -> &'static str {
    if instance.enabled { "enabled" } else { "disabled" }
}
