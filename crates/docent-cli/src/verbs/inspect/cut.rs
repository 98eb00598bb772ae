use super::arguments::ListArguments;
use crate::app::App;
use crate::exit::Failure;
use docent::inspect::LeftOut;
use serde::Serialize;

/// What the limits have omitted from a list, as a separate JSON line.
#[derive(Debug, Serialize)]
struct Cut {
    cut: bool,
    left_out: LeftOut,
}

/// Reports that a list which limits had cut is complete again.
pub(super) fn report_complete(app: &App) -> Result<(), Failure> {
    if app.output.is_json() {
        app.output.json(&Cut { cut: false, left_out: LeftOut::default() })?;
    } else {
        app.output.remark("the list is complete now");
    }
    Ok(())
}

/// Reports that limits have cut the list, and the options that raise them.
pub(super) fn report_cut(app: &App, arguments: &ListArguments, left_out: LeftOut) -> Result<(), Failure> {
    if left_out.is_empty() {
        return Ok(());
    }
    if app.output.is_json() {
        app.output.json(&Cut { cut: true, left_out })?;
    }
    let LeftOut { nodes, deep, data, .. } = left_out;
    let causes = [
        (nodes, format!("at least {nodes} nodes (raise --nodes {})", arguments.nodes)),
        (deep, format!("the children of {deep} folders (raise --depth {})", arguments.depth)),
        (data, format!("the data of {data} nodes (list a smaller part of the tree)")),
    ];
    let causes: Vec<_> = causes.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text).collect();
    app.output.remark(format!("the list is incomplete, because it omits {}", causes.join(", ")));
    Ok(())
}
