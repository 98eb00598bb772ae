use super::access::readable;
use super::arguments::ListArguments;
use super::cut::report_cut;
use super::owner::owner_of;
use super::path::report_refused;
use super::short::short;
use super::summary::summary;
use super::time::age;
use crate::app::App;
use crate::exit::{Ending, Failure, Outcome};
use crate::output::{Deleted, Table};
use docent::inspect::{Inspector, Kind, Limits, Report, Survey, SurveyEvent};
use futures_util::StreamExt;

/// Lists the recipes below a path, and prints each later change if requested.
pub(crate) async fn run(app: &App, arguments: &ListArguments) -> Outcome {
    let (root, kinds) = arguments.selection().map_err(Failure::usage)?;
    app.with_signals(async |client, signals| {
        let limits =
            Limits::default().nodes(arguments.nodes).depth(arguments.depth).look_every(arguments.every);
        let builder = Inspector::builder(client).limits(limits);
        let inspector = if arguments.read_only { builder.read_only() } else { builder }.build();
        let listing = Listing { app, arguments };
        if !arguments.watch {
            let mut survey = signals.or(inspector.walk(root)).await??;
            survey.found.retain(|report| is_wanted(kinds, report));
            survey.found = arguments.selection.of(survey.found);
            readable(&survey.root, &survey.refused)?;
            listing.show(&survey)?;
            return Ok(if survey.left_out.is_empty() { Ending::Done } else { Ending::Cut });
        }
        let selection = arguments.selection.clone();
        let is_selected = move |report: &Report| is_wanted(kinds, report) && selection.includes(report);
        let mut events = inspector.watch_below(root).select(is_selected);
        while let Some(event) = signals.or(events.next()).await? {
            listing.follow(event?)?;
        }
        Ok(Ending::Done)
    })
    .await
}

/// Returns true for a report of one of the kinds, or of any if there are none.
fn is_wanted(kinds: Option<&[Kind]>, report: &Report) -> bool {
    kinds.is_none_or(|kinds| kinds.contains(&report.kind()))
}

fn narrow(found: &[Report]) -> Table {
    let mut table = Table::new(["PATH", "KIND", "STATE"]);
    for report in found {
        table.row(row(report));
    }
    table
}

/// Returns a table that also has the owner and the age, by which a list can be sorted.
fn wide(found: &[Report]) -> Table {
    let mut table = Table::new(["PATH", "KIND", "OWNER", "AGE", "WRITERS", "STATE"]);
    for report in found {
        let writers: Vec<_> = report.writers.iter().map(ToString::to_string).collect();
        table.row([
            short(&report.path),
            report.kind().to_string(),
            short(&owner_of(report).unwrap_or_default()),
            age(report.since()),
            writers.join(", "),
            short(&summary(&report.recipe)),
        ]);
    }
    table
}

/// Printer of lists and changes.
struct Listing<'a> {
    app: &'a App,
    arguments: &'a ListArguments,
}

impl Listing<'_> {
    fn show(&self, survey: &Survey) -> Result<(), Failure> {
        let output = &self.app.output;
        if output.is_json() {
            survey.found.iter().try_for_each(|report| output.json(report))?;
        } else {
            output.table(&if output.is_wide() { wide(&survey.found) } else { narrow(&survey.found) })?;
        }
        report_refused(self.app, &survey.refused);
        report_cut(self.app, self.arguments, survey.left_out)
    }

    fn follow(&self, event: SurveyEvent) -> Result<(), Failure> {
        let output = &self.app.output;
        match event {
            SurveyEvent::Snapshot(mut live) => {
                readable(&live.survey.root, &live.survey.refused)?;
                live.survey.found = self.arguments.selection.of(std::mem::take(&mut live.survey.found));
                self.show(&live.survey)?;
            }
            SurveyEvent::Changed(report) if output.is_json() => output.json(&report)?,
            SurveyEvent::Changed(report) => output.line(row(&report).join("  "))?,
            SurveyEvent::Gone { path, .. } if output.is_json() => output.json(&Deleted::new(&path))?,
            SurveyEvent::Gone { path, .. } => output.line(format!("{}  deleted", short(&path)))?,
            SurveyEvent::Gaps { refused, left_out, .. } => {
                report_refused(self.app, &refused);
                report_cut(self.app, self.arguments, left_out)?;
            }
            SurveyEvent::Stale => output.remark("connection lost: the list may be out of date"),
            SurveyEvent::Current => output.remark("connected again: the list is up to date"),
            _ => {}
        }
        Ok(())
    }
}

fn row(report: &Report) -> [String; 3] {
    [short(&report.path), report.kind().to_string(), short(&summary(&report.recipe))]
}
