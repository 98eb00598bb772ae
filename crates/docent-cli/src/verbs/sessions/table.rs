use crate::output::Table;
use crate::verbs::inspect::{age, short};
use docent::inspect::{SessionNode, SessionReport, StakeRole};

/// Returns a row for each session.
pub(super) fn summaries(sessions: &[SessionReport]) -> Table {
    let mut table = Table::new(["SESSION", "OWNER", "AGE", "STAKES"]);
    for session in sessions {
        let stakes = short(&stakes(&session.nodes));
        table.row([id(session), short(&session.owner()), age(session.since()), stakes]);
    }
    table
}

/// Returns a row for each node of each session.
pub(super) fn nodes(sessions: &[SessionReport]) -> Table {
    let mut table = Table::new(["SESSION", "OWNER", "ROLE", "KIND", "NODE", "AGE", "REMARKS"]);
    for session in sessions {
        for node in &session.nodes {
            let kind = node.kind.map(|kind| kind.to_string()).unwrap_or_default();
            let waits_for = node.waits_for.as_ref().map(|name| format!("waits for {name}"));
            table.row([
                id(session),
                short(&session.owner()),
                node.role.to_string(),
                kind,
                short(&node.path),
                age(Some(node.since)),
                short(&waits_for.unwrap_or_default()),
            ]);
        }
    }
    table
}

fn id(session: &SessionReport) -> String {
    format!("{:#x}", session.session)
}

/// Lists what a session does in each recipe, such as `holds /locks/a, waits /locks/b`. Nodes that belong to
/// no recipe are listed by their own paths.
fn stakes(nodes: &[SessionNode]) -> String {
    let mut stakes: Vec<(StakeRole, &str, usize)> = Vec::new();
    for node in nodes {
        let path = node.recipe.as_deref().unwrap_or(&node.path);
        match stakes.iter_mut().find(|(role, known, _)| (*role, *known) == (node.role, path)) {
            Some((.., count)) => *count += 1,
            None => stakes.push((node.role, path, 1)),
        }
    }
    stakes.sort();
    let text = |(role, path, count): &(StakeRole, &str, usize)| match count {
        1 => format!("{role} {path}"),
        count => format!("{role} {path} ({count} nodes)"),
    };
    stakes.iter().map(text).collect::<Vec<_>>().join(", ")
}
