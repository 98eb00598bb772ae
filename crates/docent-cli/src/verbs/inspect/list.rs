use super::access::readable;
use super::arguments::ListArguments;
use super::cut::{report_complete, report_cut};
use super::owner::owner_of;
use super::path::report_refused;
use super::short::short;
use super::summary::summary;
use super::time::age;
use crate::app::App;
use crate::exit::{Ending, Failure, Outcome};
use crate::output::{Deleted, Table};
use docent::inspect::{Inspector, Kind, LeftOut, Limits, Refusal, Report, Survey, SurveyEvent};
use futures_util::StreamExt;
use std::collections::BTreeSet;

/// Lists the recipes below a path, and prints each later change if requested.
pub(crate) async fn run(app: &App, arguments: &ListArguments) -> Outcome {
    let (root, kinds) = arguments.selection().map_err(Failure::usage)?;
    app.with_signals(async |client, signals| {
        let limits =
            Limits::default().nodes(arguments.nodes).depth(arguments.depth).look_every(arguments.every);
        let inspector = Inspector::builder(client).limits(limits).build();
        let mut listing =
            Listing { app, arguments, listed: BTreeSet::new(), refused: BTreeSet::new(), is_cut: false };
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

/// Returns the cells of a report. With `is_wide` they include the owner and the age, by which a list can be
/// sorted.
fn cells(report: &Report, is_wide: bool) -> Vec<String> {
    let (path, kind, state) =
        (short(&report.path), report.kind().to_string(), short(&summary(&report.recipe)));
    if !is_wide {
        return vec![path, kind, state];
    }
    let writers: Vec<_> = report.writers.iter().map(ToString::to_string).collect();
    let owner = short(&owner_of(report).unwrap_or_default());
    vec![path, kind, owner, age(report.since()), writers.join(", "), state]
}

fn table(found: &[Report], is_wide: bool) -> Table {
    let mut table = match is_wide {
        true => Table::new(["PATH", "KIND", "OWNER", "AGE", "WRITERS", "STATE"]),
        false => Table::new(["PATH", "KIND", "STATE"]),
    };
    found.iter().for_each(|report| table.row(cells(report, is_wide)));
    table
}

/// Printer of lists and changes.
struct Listing<'a> {
    app: &'a App,
    arguments: &'a ListArguments,
    /// Paths of the recipes that were printed and not deleted since.
    listed: BTreeSet<String>,
    /// Paths that were reported as unreadable.
    refused: BTreeSet<String>,
    /// True if limits have cut the list that was printed.
    is_cut: bool,
}

impl Listing<'_> {
    fn show(&mut self, survey: &Survey) -> Result<(), Failure> {
        let output = &self.app.output;
        if output.is_json() {
            survey.found.iter().try_for_each(|report| output.json(report))?;
        } else {
            output.table(&table(&survey.found, output.is_wide()))?;
        }
        self.report_gaps(&survey.refused, survey.left_out)
    }

    /// Reports what could not be read and was not reported yet, and what the limits have omitted.
    fn report_gaps(&mut self, refused: &[Refusal], left_out: LeftOut) -> Result<(), Failure> {
        let new = refused.iter().filter(|refusal| !self.refused.contains(&refusal.path));
        report_refused(self.app, new);
        self.refused = refused.iter().map(|refusal| refusal.path.clone()).collect();
        if std::mem::replace(&mut self.is_cut, !left_out.is_empty()) && !self.is_cut {
            report_complete(self.app)?;
        }
        report_cut(self.app, self.arguments, left_out)
    }

    /// Prints a recipe as deleted.
    fn delete(&self, path: &str) -> Result<(), Failure> {
        let output = &self.app.output;
        let printed = match output.is_json() {
            true => output.json(&Deleted::new(path)),
            false => output.line(format!("{}  deleted", short(path))),
        };
        Ok(printed?)
    }

    fn follow(&mut self, event: SurveyEvent) -> Result<(), Failure> {
        let output = &self.app.output;
        match event {
            SurveyEvent::Snapshot(mut live) => {
                readable(&live.survey.root, &live.survey.refused)?;
                live.survey.found = self.arguments.selection.of(std::mem::take(&mut live.survey.found));
                let found = live.survey.found.iter().map(|report| report.path.clone()).collect();
                let before = std::mem::replace(&mut self.listed, found);
                before.difference(&self.listed).try_for_each(|path| self.delete(path))?;
                self.show(&live.survey)?;
            }
            SurveyEvent::Changed(report) => {
                match output.is_json() {
                    true => output.json(&report)?,
                    false => output.line(cells(&report, output.is_wide()).join("  "))?,
                }
                self.listed.insert(report.path);
            }
            SurveyEvent::Gone { path, .. } => {
                self.delete(&path)?;
                self.listed.remove(&path);
            }
            SurveyEvent::Gaps { refused, left_out, .. } => self.report_gaps(&refused, left_out)?,
            SurveyEvent::Stale => output.remark("connection lost: the list may be out of date"),
            SurveyEvent::Current => output.remark("connected again: the list is up to date"),
            _ => {}
        }
        Ok(())
    }
}
