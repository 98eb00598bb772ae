use super::inspector::{Inspected, Inspection, inspect_nodes, server_time};
use super::reader::read;
use super::{Inspector, Survey};
use crate::nodes::{Earlier, Known, Nodes, join};
use crate::report::{Ephemeral, LeftOut, Recipe, Report};
use docent_config::internals::HISTORY;
use docent_core::Error;
use std::time::SystemTime;

/// ZooKeeper's own folder, which holds no recipes.
const SYSTEM: &str = "/zookeeper";

/// Walks level by level from `root`, using the answers of an earlier walk instead of reads.
pub(crate) async fn walk(
    inspector: &Inspector,
    root: &str,
    earlier: &mut Earlier,
) -> Result<Inspection<Survey>, Error> {
    let now = inspector.now().await;
    let mut nodes = Nodes::default();
    let (mut found, mut deep, mut skipped, mut reads) = (Vec::new(), 0, 0, Vec::new());
    let mut level = vec![root.to_owned()];
    for depth in 0.. {
        let mut reports = Vec::new();
        for inspected in inspect_level(inspector, &mut nodes, earlier, &level, now).await? {
            skipped += inspected.skipped;
            reads.push((inspected.report.path.clone(), inspected.reads));
            reports.push(inspected.report);
        }
        let below = |report: &Report| below(&nodes, report);
        if depth == inspector.limits().depth {
            deep = reports.iter().filter(|report| !below(report).is_empty()).count();
            level = Vec::new();
        } else {
            level = reports.iter().flat_map(below).collect();
        }
        found.extend(reports.into_iter().filter(is_recipe));
        if level.is_empty() {
            break;
        }
    }
    let left_out = nodes.left_out();
    let survey = Survey {
        root: root.to_owned(),
        found,
        ephemerals: ephemerals(&nodes, now),
        nodes: nodes.len(),
        refused: nodes.refused(),
        left_out: LeftOut { deep, nodes: left_out.nodes + skipped, ..left_out },
        as_of_zxid: nodes.newest_zxid(),
        clock: server_time(&nodes, now),
    };
    Ok(Inspection { result: survey, nodes, reads })
}

/// Reports on the paths of one level, in order.
async fn inspect_level(
    inspector: &Inspector,
    nodes: &mut Nodes,
    earlier: &mut Earlier,
    paths: &[String],
    now: Option<SystemTime>,
) -> Result<Vec<Inspected>, Error> {
    let mut reports: Vec<Option<Inspected>> = paths.iter().map(|_| None).collect();
    let mut open: Vec<usize> = (0..paths.len()).collect();
    while !open.is_empty() {
        let mut missing = Vec::new();
        open.retain(|index| match inspect_nodes(nodes, &paths[*index], now, inspector.limits()) {
            Ok(inspected) => {
                reports[*index] = Some(inspected);
                false
            }
            Err(reads) => {
                missing.extend(reads);
                true
            }
        });
        read(&inspector.client, &inspector.limits, nodes, earlier, missing).await?;
    }
    Ok(reports.into_iter().flatten().collect())
}

/// Returns the ephemeral nodes that were read, with their ages.
fn ephemerals(nodes: &Nodes, now: Option<SystemTime>) -> Vec<Ephemeral> {
    let Some(clock) = server_time(nodes, now) else { return Vec::new() };
    nodes
        .stats()
        .into_iter()
        .filter_map(|(path, stat)| {
            let since = clock.since(stat.created);
            Some(Ephemeral { path: path.to_owned(), session: stat.owner?, since })
        })
        .collect()
}

fn is_recipe(report: &Report) -> bool {
    !matches!(report.recipe, Recipe::Plain(_) | Recipe::Absent | Recipe::Unreadable)
}

/// Returns paths below that of a report that may be separate recipes.
fn below(nodes: &Nodes, report: &Report) -> Vec<String> {
    if !matches!(report.recipe, Recipe::Plain(_) | Recipe::Registry(_) | Recipe::Config(_)) {
        return Vec::new();
    }
    let Some(Known::Present(folder)) = nodes.folder(&report.path) else { return Vec::new() };
    let names = folder.names.iter().filter(|name| *name != HISTORY);
    names.map(|name| join(&report.path, name)).filter(|path| path != SYSTEM).collect()
}
