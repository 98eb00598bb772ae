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

/// Reports on one path, and follows it if requested.
pub(crate) async fn run(app: &App, arguments: &Arguments) -> Outcome {
    app.with_signals(async |client, signals| {
        let inspector = Inspector::new(client);
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
                app.output.remark("cannot reach any server: the report may be out of date");
            }
            print(app, &live.report)?;
        }
        Ok(Ending::Done)
    })
    .await
}

/// Prints a report as JSON, or as facts and a table of all participants.
fn print(app: &App, report: &Report) -> Result<(), Failure> {
    if app.output.is_json() {
        return Ok(app.output.json(report)?);
    }
    let alternatives: Vec<_> = report.may_be.iter().map(ToString::to_string).collect();
    let alternatives =
        if alternatives.is_empty() { String::new() } else { format!(", or {}", alternatives.join(" or ")) };
    let writers: Vec<_> = report.writers.iter().map(ToString::to_string).collect();
    let writers = if writers.is_empty() { String::new() } else { format!(", by {}", writers.join(" and ")) };
    app.output.line(format!("{}: {}{alternatives}{writers}", report.path, report.kind()))?;
    if let Some(path) = &report.part_of {
        app.output.line(format!("  part of: {}", short(path)))?;
    }
    for (name, value) in facts(&report.recipe) {
        app.output.line(format!("  {name}: {}", short(&value)))?;
    }
    let rows = rows(&report.recipe);
    if !rows.is_empty() {
        let heading = ["STATE", "OWNER", "NAME", "AGE", "SESSION", "REMARKS"];
        let mut table = Table::new(heading).flexible("NAME");
        rows.iter().for_each(|row| table.row(row.each_ref().map(|cell| short(cell))));
        app.output.table(&table)?;
    }
    report_gaps(app, &report.refused, report.left_out);
    Ok(())
}

/// Reports what could not be read and what the limits omitted.
pub(crate) fn report_gaps(app: &App, refused: &[Refusal], left_out: LeftOut) {
    report_refused(app, refused);
    if !left_out.is_empty() {
        let LeftOut { nodes, deep, data, .. } = left_out;
        app.output.remark(format!(
            "omitted because of limits: {nodes} nodes, the children of {deep} folders, the data of {data} nodes"
        ));
    }
}

/// Reports what could not be read.
pub(super) fn report_refused<'a>(app: &App, refused: impl IntoIterator<Item = &'a Refusal>) {
    for refusal in refused {
        app.output.remark(format!("permission denied at {}", refusal.path));
    }
}
