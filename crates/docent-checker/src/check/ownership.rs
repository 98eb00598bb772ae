use crate::analysis::Analysis;
use crate::journal_replay::Remover;
use crate::listings::offers;
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeSet;

/// **No client deletes another client's node**: a client deletes the node of an instance or a member only if
/// it owns the node, in its current or an older session. A client with the same id, such as a restarted
/// process, waits for its predecessor's session to end.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let offers = offers(&analysis.run.events);
    let paths: BTreeSet<&str> = offers.iter().map(|offer| offer.path).collect();
    for node in analysis.replay.nodes().iter().filter(|node| paths.contains(&*node.path)) {
        let Some((deleted, session)) = node.deleted.and_then(|deleted| match deleted.by {
            Remover::Session(session) => Some((deleted, session)),
            _ => None,
        }) else {
            continue;
        };
        let (Some(owner), Some(remover)) = (analysis.client_of(node.owner), analysis.client_of(session))
        else {
            continue;
        };
        if owner != remover {
            let what = "deleted the node of another client:";
            let violation = Violation::new(Invariant::D3, deleted.when.at, what);
            found.push(violation.client(remover).client(owner).path(&*node.path));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::history::{DiscoveryEvents, HistoryBuilder};
    use crate::violation::Invariant::D3;

    /// Both clients announce the node, and this session deletes the node of the first.
    fn deleted_by(session: i64) -> HistoryBuilder {
        let mut history = HistoryBuilder::new();
        history.at(100).request(0, 1, "/s/a", 10).write_node("/s/a", 1, Some(10));
        history.at(110).request(1, 2, "/s/a", 20);
        history.at(200).delete_path("/s/a", session).end(1_000)
    }

    #[test]
    fn a_client_may_delete_its_own_node_and_third_parties_are_ignored() {
        deleted_by(1).holds();
        deleted_by(99).holds();
    }

    #[test]
    fn the_deletion_of_another_clients_node_is_caught() {
        deleted_by(2).breaks(D3);
    }
}
