use crate::app::App;
use crate::args::ContextsFile;
use crate::exit::Failure;
use crate::output::Table;
use serde::Serialize;

/// A context as shown in JSON. Its other settings are in the file.
#[derive(Debug, Serialize)]
struct ShownContext<'a> {
    name: &'a str,
    is_current: bool,
    connect: &'a str,
    namespace: Option<&'a str>,
}

/// Lists the contexts in the order of their names.
pub(super) fn run(app: &App, file: &ContextsFile) -> Result<(), Failure> {
    let mut table = Table::new(["", "NAME", "CONNECT", "NAMESPACE"]);
    for (name, options) in file.contexts.all() {
        let is_current = file.contexts.current_name() == Some(name);
        let (connect, namespace) = (&*options.connect, options.namespace.as_deref());
        if app.output.is_json() {
            app.output.json(&ShownContext { name, is_current, connect, namespace })?;
        } else {
            table.row([if is_current { "*" } else { "" }, name, connect, namespace.unwrap_or_default()]);
        }
    }
    if !app.output.is_json() {
        app.output.table(&table)?;
    }
    Ok(())
}
