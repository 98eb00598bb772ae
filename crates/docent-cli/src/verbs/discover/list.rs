use super::arguments::Arguments;
use super::endpoint::Endpoint;
use super::file_sd::Group;
use crate::app::App;
use crate::args::Format;
use crate::exit::Failure;
use crate::output::json_escaped;
use docent::discovery::{Instance, Instances};
use serde_json::Value;

/// Instances that may be given work, in the form that other programs read.
#[derive(Debug)]
pub(super) struct List {
    pub(super) text: String,
    pub(super) is_empty: bool,
}

impl List {
    /// Creates the list: groups for Prometheus with `-o file-sd`, otherwise a line for each instance. An
    /// instance that is not valid is skipped and reported on standard error.
    pub(super) fn new(
        app: &App,
        name: &str,
        instances: &Instances<Value>,
        arguments: &Arguments,
    ) -> Result<Self, Failure> {
        match app.output.format() {
            Format::FileSd => {
                let groups = each(app, instances, |id, endpoint, instance| {
                    Ok(Group::new(name, id, endpoint, instance))
                });
                let json = serde_json::to_string(&groups)
                    .map_err(|error| Failure::other(format!("cannot serialize the instances: {error}")))?;
                Ok(Self { text: json_escaped(&json) + "\n", is_empty: groups.is_empty() })
            }
            _ => {
                let template = arguments.format.clone().unwrap_or_default();
                let lines = each(app, instances, |id, endpoint, _| template.line(id, endpoint));
                let all = arguments.header.iter().chain(&lines);
                let text = all.map(|line| format!("{line}\n")).collect();
                Ok(Self { text, is_empty: lines.is_empty() })
            }
        }
    }
}

/// Returns what `form` returns for each instance that has an address and a port, in the order of nodes.
fn each<T>(
    app: &App,
    instances: &Instances<Value>,
    form: impl Fn(&str, &Endpoint, &Instance<Value>) -> Result<T, String>,
) -> Vec<T> {
    let mut formed = Vec::new();
    for (id, instance) in instances.all().filter(|(_, instance)| instance.enabled) {
        let done = Endpoint::of(instance)
            .and_then(|endpoint| endpoint.map(|endpoint| form(id, &endpoint, instance)).transpose());
        match done {
            Ok(done) => formed.extend(done),
            Err(reason) => app.output.remark(format!("skipped instance {id:?}: {reason}")),
        }
    }
    formed
}
