use crate::analysis::Analysis;
use crate::journal_replay::Remover;
use crate::listings::offers;
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeSet;

/// **Nobody's node is taken away**: a client deletes the node of an instance or a member only if it is its
/// own, of this or an older session. A client with the same id, as a process that was started again, waits
/// for its predecessor's session to end.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let offers = offers(&analysis.run.events);
    let paths: BTreeSet<&str> = offers.iter().map(|offer| offer.path).collect();
    for node in analysis.replay.nodes().iter().filter(|node| paths.contains(&*node.path)) {
        let Some((gone, session)) = node.gone.and_then(|gone| match gone.by {
            Remover::Session(session) => Some((gone, session)),
            _ => None,
        }) else {
            continue;
        };
        let (Some(owner), Some(remover)) = (analysis.client_of(node.owner), analysis.client_of(session))
        else {
            continue;
        };
        if owner != remover {
            let what = "deleted the node of another one:";
            let violation = Violation::new(Invariant::D3, gone.when.at, what);
            found.push(violation.client(remover).client(owner).path(&*node.path));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::history::{DiscoveryEvents, HistoryBuilder};
    use crate::violation::Invariant::D3;

    /// Both want it, and this session deletes what the first one has.
    fn deleted_by(session: i64) -> HistoryBuilder {
        let mut history = HistoryBuilder::new();
        history.at(100).wants(0, 1, "/s/a", 10).write_node("/s/a", 1, Some(10));
        history.at(110).wants(1, 2, "/s/a", 20);
        history.at(200).delete_path("/s/a", session).end(1_000)
    }

    #[test]
    fn ones_own_node_may_be_deleted_and_strangers_are_no_clients() {
        deleted_by(1).holds();
        deleted_by(99).holds();
    }

    #[test]
    fn anothers_node_may_not() {
        deleted_by(2).breaks(D3);
    }
}
