use super::access::readable;
use super::arguments::Arguments;
use super::facts::facts;
use super::rows::rows;
use super::short::short;
use crate::app::App;
use crate::exit::{Ending, Failure, Outcome};
use crate::output::Table;
use docent::inspect::{Inspector, LeftOut, Refusal, Report};
use futures_util::StreamExt;

/// Reports about one path, and follows it where that was asked for.
pub(crate) async fn run(app: &App, arguments: &Arguments) -> Outcome {
    app.with_signals(async |client, signals| {
        let builder = Inspector::builder(client);
        let inspector = if arguments.read_only { builder.read_only() } else { builder }.build();
        if !arguments.watch {
            let report = signals.or(inspector.path(&arguments.path)).await??;
            readable(&report.path, &report.refused)?;
            print(app, &report)?;
            return Ok(Ending::Done);
        }
        let mut reports = inspector.watch(&arguments.path);
        while let Some(live) = signals.or(reports.next()).await? {
            let live = live?;
            readable(&live.report.path, &live.report.refused)?;
            if app.output.is_json() {
                app.output.json(&live)?;
                continue;
            }
            if live.is_stale {
                app.output.remark("the servers are away: it may have changed since");
            }
            print(app, &live.report)?;
        }
        Ok(Ending::Done)
    })
    .await
}

/// Prints a report: as JSON, or as facts and a table of all who take part.
fn print(app: &App, report: &Report) -> Result<(), Failure> {
    if app.output.is_json() {
        return Ok(app.output.json(report)?);
    }
    let others: Vec<_> = report.may_be.iter().map(ToString::to_string).collect();
    let others = if others.is_empty() { String::new() } else { format!(", or {}", others.join(" or ")) };
    let writers: Vec<_> = report.writers.iter().map(ToString::to_string).collect();
    let writers = if writers.is_empty() { String::new() } else { format!(", by {}", writers.join(" and ")) };
    app.output.line(format!("{}: {}{others}{writers}", report.path, report.kind()))?;
    for (name, value) in facts(&report.recipe) {
        app.output.line(format!("  {name}: {}", short(&value)))?;
    }
    let rows = rows(&report.recipe);
    if !rows.is_empty() {
        let mut table = Table::new(["STATE", "NAME", "OWNER", "AGE", "SESSION", "REMARKS"]);
        rows.iter().for_each(|row| table.row(row.each_ref().map(|cell| short(cell))));
        app.output.table(&table)?;
    }
    tell_gaps(app, &report.refused, report.left_out);
    Ok(())
}

/// Tells what could not be read or was left out.
pub(super) fn tell_gaps(app: &App, refused: &[Refusal], left_out: LeftOut) {
    for refusal in refused {
        app.output.remark(format!("permission denied at {}", refusal.path));
    }
    if !left_out.is_empty() {
        let LeftOut { nodes, deep, data, .. } = left_out;
        app.output.remark(format!(
            "left out by the limits: {nodes} nodes, the children of {deep} folders, the data of {data} nodes"
        ));
    }
}
