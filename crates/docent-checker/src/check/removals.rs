use crate::analysis::Analysis;
use crate::listings::{State, View, firsts, histories, is_in, views};
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeMap;
use std::time::Duration;

/// **Members that never left are shown**: nobody disappears from a view whose node was there all the time,
/// under any faults of links, servers and the client's own sessions; and where the view has a grace for nodes
/// that are gone, nobody disappears earlier than that.
///
/// A node that is deleted and made again by one transaction was never gone.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let views = views(&analysis.run.events);
    let histories = histories(analysis.run, views.iter().map(|view| view.folder), is_in);
    let firsts: BTreeMap<_, _> = histories.iter().map(|(folder, states)| (*folder, firsts(states))).collect();
    for view in &views {
        for pair in view.shown.windows(2) {
            let (before, (at, after)) = (pair[0].1, pair[1]);
            for one in before.iter().filter(|one| after.iter().all(|other| other.name != one.name)) {
                let path = format!("{}/{}", view.folder, one.name);
                let shown = firsts[view.folder].get(&(&*path, one.number)).copied().unwrap_or(0);
                let later = &histories[view.folder][shown..];
                if !was_gone(analysis, view, later, &path, one.number, at) {
                    let what = "disappeared from a view, and never was gone for its grace:";
                    found.push(Violation::new(Invariant::D2, at, what).client(view.client).path(path));
                }
            }
        }
    }
}

/// True when a node that said `number` was missing in one of these states, the view's grace before `at`.
fn was_gone(
    analysis: &Analysis<'_>,
    view: &View<'_>,
    states: &[State],
    path: &str,
    number: Option<u64>,
    at: Duration,
) -> bool {
    let by = at + analysis.tolerances().grain;
    // A node that cannot be read is no instance, and has no grace.
    let grace = number.map_or(Duration::ZERO, |_| view.grace);
    let mut in_time = states.iter().take_while(|state| state.at + grace <= by);
    in_time.any(|state| !state.nodes.contains_key(path))
}

#[cfg(test)]
mod tests {
    use crate::history::{DiscoveryEvents, HistoryBuilder};
    use crate::violation::Invariant::D2;

    /// Shown at 0.2 s, and not at 3 s any more.
    fn disappears(gone: Option<u64>, grace: u64) -> HistoryBuilder {
        let mut history = HistoryBuilder::new();
        history.at(100).write_node("/s/a", 1, Some(10)).at(150).view(3, "/s", grace);
        history.at(200).shown(3, &[("a", Some(10))]);
        if let Some(gone) = gone {
            history.at(gone).delete_path("/s/a", 1);
        }
        history.at(3_000).shown(3, &[]).end(4_000)
    }

    #[test]
    fn who_left_disappears() {
        disappears(Some(2_990), 0).holds();
        disappears(Some(1_000), 2_000).holds();
    }

    #[test]
    fn who_never_left_is_missed() {
        disappears(None, 0).breaks(D2);
    }

    #[test]
    fn who_disappears_within_the_grace_is_missed() {
        disappears(Some(1_100), 2_000).breaks(D2);
    }

    #[test]
    fn who_left_before_it_was_shown_again_is_missed() {
        let mut history = HistoryBuilder::new();
        history.at(100).write_node("/s/a", 1, Some(10)).at(200).delete_path("/s/a", 1);
        history.at(300).write_node("/s/a", 2, Some(11)).at(350).view(3, "/s", 0);
        history.at(400).shown(3, &[("a", Some(11))]).at(500).shown(3, &[]).end(1_000).breaks(D2);
    }
}
