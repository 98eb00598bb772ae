use super::arguments::Arguments;
use super::list::List;
use crate::app::App;
use crate::args::Format;
use crate::exit::Failure;
use crate::output::Table;
use docent::discovery::{Instance, Instances};
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// All instances of a service, as shown in JSON while they are followed.
#[derive(Debug, Serialize)]
pub(super) struct ShownService<'a> {
    service: &'a str,
    instances: Vec<&'a Instance<Value>>,
}

impl<'a> ShownService<'a> {
    pub(super) fn new(service: &'a str, instances: &'a Instances<Value>) -> Self {
        Self { service, instances: instances.all().map(|(_, instance)| &**instance).collect() }
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
        Format::Json => instances.all().try_for_each(|(_, instance)| app.output.json(&**instance))?,
        Format::Hostport | Format::FileSd => {
            app.output.bytes(List::new(app, name, instances, arguments)?.text.as_bytes())?;
        }
        Format::Table => app.output.table(&table(instances))?,
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

fn table(instances: &Instances<Value>) -> Table {
    let mut table = Table::new(["ID", "ADDRESS", "STATE", "WEIGHT", "PAYLOAD"]);
    for (id, instance) in instances.all() {
        table.row(row(id, instance));
    }
    table
}

fn row(id: &str, instance: &Arc<Instance<Value>>) -> [String; 5] {
    let state = if instance.enabled { "enabled" } else { "disabled" };
    let weight = instance.weight.map_or_else(String::new, |weight| weight.to_string());
    let payload = instance.payload.as_ref().filter(|payload| !payload.is_null());
    let payload = payload.map_or_else(String::new, Value::to_string);
    [id.to_owned(), instance.authority().unwrap_or_default(), state.to_owned(), weight, payload]
}
