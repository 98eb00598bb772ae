use crate::analysis::Analysis;
use crate::event::EventKind;
use crate::violation::{Found, Invariant, Violation};

/// **Barriers**: a waiter passes only if the barrier was absent at some moment since it began to wait.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let grain = analysis.tolerances().grain;
    for (_, event) in analysis.events() {
        let EventKind::Passed { path, since } = &event.kind else { continue };
        let Some(index) = analysis.replay.node_at(path, since.saturating_sub(grain)) else { continue };
        let node = &analysis.replay.nodes()[index];
        if node.deleted.is_none_or(|deleted| deleted.when.at > event.at + grain) {
            let violation =
                Violation::new(Invariant::B3, event.at, "passed while the barrier was set:").path(path);
            found.push(event.client.into_iter().fold(violation, Violation::client));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::event::EventKind;
    use crate::history::HistoryBuilder;
    use crate::violation::Invariant::B3;
    use std::time::Duration;

    fn passed(removed: bool) -> HistoryBuilder {
        let mut history = HistoryBuilder::new();
        history.at(100).create_node("/barrier", 1, 0);
        if removed {
            history.at(250).delete_path("/barrier", 2).at(251).create_node("/barrier", 1, 0);
        }
        let since = Duration::from_millis(200);
        history.at(300).record(1, EventKind::Passed { path: "/barrier".to_owned(), since }).end(1_000)
    }

    #[test]
    fn a_waiter_resumes_when_the_barrier_is_removed() {
        passed(true).holds();
    }

    #[test]
    fn a_waiter_that_resumes_before_the_removal_is_caught() {
        passed(false).breaks(B3);
    }
}
