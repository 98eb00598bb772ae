use super::arguments::Arguments;
use super::table::{nodes, summaries};
use crate::app::App;
use crate::exit::{Ending, Failure, Outcome};
use crate::verbs::inspect::{readable, report_gaps};
use docent::inspect::{Inspector, Limits};

/// Lists the sessions that own ephemeral nodes.
pub(crate) async fn run(app: &App, arguments: &Arguments) -> Outcome {
    let (root, wanted) = arguments.selection().map_err(Failure::usage)?;
    let survey = app
        .with_signals(async |client, signals| {
            let limits = Limits::default().nodes(arguments.nodes);
            let inspector = Inspector::builder(client).limits(limits).build();
            Ok(signals.or(inspector.walk(root)).await??)
        })
        .await?;
    readable(&survey.root, &survey.refused)?;
    report_gaps(app, &survey.refused, survey.left_out);
    let mut sessions = survey.sessions();
    if let Some(wanted) = wanted {
        sessions.retain(|session| session.session == wanted);
        if sessions.is_empty() {
            let text = format!("session {wanted:#x} owns no ephemeral node below {root}");
            return Err(Failure::not_found(text));
        }
    }
    if app.output.is_json() {
        sessions.iter().try_for_each(|session| app.output.json(session))?;
    } else if wanted.is_some() || app.output.is_wide() {
        app.output.table(&nodes(&sessions))?;
    } else {
        app.output.table(&summaries(&sessions))?;
    }
    Ok(Ending::Done)
}
