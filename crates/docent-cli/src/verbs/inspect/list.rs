use super::arguments::ListArguments;
use super::path::tell_gaps;
use super::summary::summary;
use crate::app::App;
use crate::exit::{Ending, Failure, Outcome};
use crate::output::Table;
use docent::inspect::{Inspector, Limits, Report};
use tokio::time::sleep;

/// Lists the recipes below a path, and lists them again after changes where that was asked for.
pub(crate) async fn run(app: &App, arguments: &ListArguments) -> Outcome {
    let (root, kinds) = arguments.selection().map_err(Failure::usage)?;
    app.with_signals(async |client, signals| {
        let limits = Limits::default().nodes(arguments.nodes).depth(arguments.depth);
        let builder = Inspector::builder(client).limits(limits);
        let inspector = if arguments.read_only { builder.read_only() } else { builder }.build();
        let mut listed = None;
        loop {
            let survey = signals.or(inspector.walk(root)).await??;
            let is_wanted = |report: &Report| kinds.is_none_or(|kinds| kinds.contains(&report.kind()));
            let found: Vec<_> = survey.found.into_iter().filter(is_wanted).collect();
            let now: Vec<_> =
                found.iter().map(|report| (report.path.clone(), report.recipe.clone())).collect();
            if listed.as_ref() != Some(&now) {
                print(app, &found)?;
                tell_gaps(app, &survey.refused, survey.left_out);
                listed = Some(now);
            }
            if !arguments.watch {
                return Ok(Ending::Done);
            }
            signals.or(sleep(arguments.every)).await?;
        }
    })
    .await
}

fn print(app: &App, found: &[Report]) -> Result<(), Failure> {
    if app.output.is_json() {
        found.iter().try_for_each(|report| app.output.json(report))?;
        return Ok(());
    }
    let mut table = Table::new(["PATH", "KIND", "STATE"]);
    for report in found {
        table.row([&report.path, report.kind().name(), &summary(&report.recipe)]);
    }
    Ok(app.output.table(&table)?)
}
