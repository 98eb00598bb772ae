use crate::app::App;
use crate::args::Format;
use crate::exit::Failure;
use crate::output::{Table, is_one_word};
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

/// Prints the instances as a table, as JSON with one instance per line, or as `host:port` lines. Unreadable
/// nodes are reported on standard error.
pub(super) fn print(app: &App, instances: &Instances<Value>) -> Result<(), Failure> {
    match app.output.format() {
        Format::Json => instances.all().try_for_each(|(_, instance)| app.output.json(&**instance))?,
        Format::Hostport => app.output.bytes(lines(app, instances).as_bytes())?,
        Format::Table => app.output.table(&table(instances))?,
    }
    for unreadable in instances.unreadable() {
        app.output.remark(format!("cannot read node {:?}: {}", unreadable.id, unreadable.reason));
    }
    Ok(())
}

/// Returns a `host:port` line for each instance that may be given work and has both. An instance whose
/// address is more than one word is skipped and reported on standard error.
pub(super) fn lines(app: &App, instances: &Instances<Value>) -> String {
    let mut lines = String::new();
    for authority in instances.iter().filter_map(|instance| instance.authority()) {
        if is_one_word(&authority) {
            lines = lines + &authority + "\n";
        } else {
            app.output.remark(format!(
                "skipped an instance: its address {authority:?} contains spaces or control characters"
            ));
        }
    }
    lines
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
