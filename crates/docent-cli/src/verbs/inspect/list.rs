use super::access::readable;
use super::arguments::ListArguments;
use super::owner::owner_of;
use super::path::report_gaps;
use super::selection::Selection;
use super::short::short;
use super::summary::summary;
use super::time::age;
use crate::app::App;
use crate::exit::{Ending, Failure, Outcome};
use crate::output::{Deleted, Table};
use docent::inspect::{Inspector, Kind, Limits, Recipe, Report, Survey};
use futures_util::StreamExt;
use std::collections::BTreeMap;

/// Lists the recipes below a path, and lists them again after changes if requested.
pub(crate) async fn run(app: &App, arguments: &ListArguments) -> Outcome {
    let (root, kinds) = arguments.selection().map_err(Failure::usage)?;
    app.with_signals(async |client, signals| {
        let limits =
            Limits::default().nodes(arguments.nodes).depth(arguments.depth).look_every(arguments.every);
        let builder = Inspector::builder(client).limits(limits);
        let inspector = if arguments.read_only { builder.read_only() } else { builder }.build();
        let mut listing = Listing { app, kinds, selection: &arguments.selection, listed: None };
        if !arguments.watch {
            let survey = signals.or(inspector.walk(root)).await??;
            readable(&survey.root, &survey.refused)?;
            listing.show(survey)?;
            return Ok(Ending::Done);
        }
        let mut surveys = inspector.watch_below(root);
        while let Some(live) = signals.or(surveys.next()).await? {
            let live = live?;
            if live.is_stale {
                app.output.remark("cannot reach any server: the list may be out of date");
            } else {
                listing.show(live.survey)?;
            }
        }
        Ok(Ending::Done)
    })
    .await
}

fn narrow(found: &[Report]) -> Table {
    let mut table = Table::new(["PATH", "KIND", "STATE"]);
    for report in found {
        table.row([short(&report.path), report.kind().to_string(), short(&summary(&report.recipe))]);
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

/// Recipes of the selected kinds, printed when they have changed.
struct Listing<'a> {
    app: &'a App,
    /// Kinds to list, `None` for all.
    kinds: Option<&'static [Kind]>,
    selection: &'a Selection,
    listed: Option<BTreeMap<String, Recipe>>,
}

impl Listing<'_> {
    fn show(&mut self, survey: Survey) -> Result<(), Failure> {
        let is_wanted = |report: &Report| self.kinds.is_none_or(|kinds| kinds.contains(&report.kind()));
        let found = self.selection.of(survey.found.into_iter().filter(is_wanted).collect());
        let now: BTreeMap<_, _> =
            found.iter().map(|report| (report.path.clone(), report.recipe.clone())).collect();
        if self.listed.as_ref() != Some(&now) {
            self.print(&found, &now)?;
            report_gaps(self.app, &survey.refused, survey.left_out);
            self.listed = Some(now);
        }
        Ok(())
    }

    fn print(&self, found: &[Report], now: &BTreeMap<String, Recipe>) -> Result<(), Failure> {
        let output = &self.app.output;
        if output.is_json() {
            return self.print_changes(found, now);
        }
        Ok(output.table(&if output.is_wide() { wide(found) } else { narrow(found) })?)
    }

    /// Prints a line for each recipe that changed since the last listing, and for each that was deleted.
    fn print_changes(&self, found: &[Report], now: &BTreeMap<String, Recipe>) -> Result<(), Failure> {
        let output = &self.app.output;
        let before = |path: &str| self.listed.as_ref().and_then(|listed| listed.get(path));
        for report in found.iter().filter(|report| before(&report.path) != Some(&report.recipe)) {
            output.json(report)?;
        }
        let deleted = self.listed.iter().flat_map(BTreeMap::keys).filter(|path| !now.contains_key(*path));
        deleted.map(|path| Deleted::new(path)).try_for_each(|deleted| Ok(output.json(&deleted)?))
    }
}
