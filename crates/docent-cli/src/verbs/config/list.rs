use super::history::LONGEST;
use super::shown::Shown;
use super::values::{self, Value};
use crate::app::App;
use crate::exit::{Ending, Failure, Outcome};
use crate::output::{Table, json_escaped, utc};
use crate::verbs::inspect::shortened;
use docent::Client;
use docent::inspect::NodeText;
use serde::Serialize;
use std::collections::BTreeMap;

/// A value as `export` writes it and `import` reads it.
#[derive(Debug, Serialize)]
struct Exported<'a> {
    path: &'a str,
    value: NodeText,
}

/// Lists the values at a path and below it.
pub(super) async fn list(app: &App, client: &Client, root: &str) -> Outcome {
    let values = values::below(app, client, root).await?;
    if app.output.is_json() {
        let show = |(path, value): (&String, &Value)| {
            app.output.json(&Shown::new(path, &value.data, Some(value.revision)))
        };
        values.iter().try_for_each(show)?;
    } else {
        app.output.table(&table(&values, app.output.is_wide()))?;
    }
    Ok(Ending::Done)
}

fn table(values: &BTreeMap<String, Value>, is_wide: bool) -> Table {
    let heading = ["PATH", "VERSION", "MODIFIED", "BYTES", "VALUE"];
    let mut table = match is_wide {
        false => Table::new(heading),
        true => Table::new(["PATH", "VERSION", "MODIFIED", "BYTES", "MZXID", "VALUE"]),
    };
    for (path, Value { data, revision }) in values {
        let mut row =
            vec![path.clone(), revision.version.to_string(), utc(revision.modified), data.len().to_string()];
        row.extend(is_wide.then(|| format!("{:#x}", revision.mzxid)));
        row.push(shortened(&String::from_utf8_lossy(data), LONGEST));
        table.row(row);
    }
    table
}

/// Writes the values at a path and below it as JSON lines, whatever the output format is.
///
/// # Errors
/// `Other` if there is none: an empty export of a misspelled path would look like a backup.
pub(super) async fn export(app: &App, client: &Client, root: &str) -> Outcome {
    let values = values::below(app, client, root).await?;
    if values.is_empty() {
        return Err(Failure::other(format!("nothing is published at {root} or below it")));
    }
    for (path, value) in &values {
        let line = serde_json::to_string(&Exported { path, value: NodeText::new(value.data.clone()) });
        let line = line.map_err(|error| Failure::other(format!("cannot serialize a value: {error}")))?;
        app.output.bytes((json_escaped(&line) + "\n").as_bytes())?;
    }
    Ok(Ending::Done)
}
