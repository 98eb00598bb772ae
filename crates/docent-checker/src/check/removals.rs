use crate::analysis::Analysis;
use crate::listings::{State, View, firsts, histories, is_in, views};
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeMap;
use std::time::Duration;

/// **Members that never left are shown**: a member whose node existed all the time does not disappear from a
/// view, whatever happens to links, servers and the client's own sessions. If the view has a grace for
/// deleted nodes, no member disappears before the grace has passed.
///
/// A node that one transaction deletes and re-creates was never absent.
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
                if !was_deleted(analysis, view, later, &path, one.number, at) {
                    let what = "disappeared from a view before it was absent for the grace:";
                    found.push(Violation::new(Invariant::D2, at, what).client(view.client).path(path));
                }
            }
        }
    }
}

/// Returns true if a node with `number` was absent in one of these states, the view's grace before `at`.
fn was_deleted(
    analysis: &Analysis<'_>,
    view: &View<'_>,
    states: &[State],
    path: &str,
    number: Option<u64>,
    at: Duration,
) -> bool {
    let by = at + analysis.tolerances().grain;
    // A node that cannot be read is not an instance, and has no grace.
    let grace = number.map_or(Duration::ZERO, |_| view.grace);
    let mut in_time = states.iter().take_while(|state| state.at + grace <= by);
    in_time.any(|state| !state.nodes.contains_key(path))
}

#[cfg(test)]
mod tests {
    use crate::history::{DiscoveryEvents, HistoryBuilder};
    use crate::violation::Invariant::D2;

    /// Shown at 0.2 s, and no longer at 3 s.
    fn disappears(deleted: Option<u64>, grace: u64) -> HistoryBuilder {
        let mut history = HistoryBuilder::new();
        history.at(100).write_node("/s/a", 1, Some(10)).at(150).view(3, "/s", grace);
        history.at(200).shown(3, &[("a", Some(10))]);
        if let Some(deleted) = deleted {
            history.at(deleted).delete_path("/s/a", 1);
        }
        history.at(3_000).shown(3, &[]).end(4_000)
    }

    #[test]
    fn a_removed_instance_disappears() {
        disappears(Some(2_990), 0).holds();
        disappears(Some(1_000), 2_000).holds();
    }

    #[test]
    fn the_disappearance_of_a_present_instance_is_caught() {
        disappears(None, 0).breaks(D2);
    }

    #[test]
    fn a_disappearance_within_the_grace_is_caught() {
        disappears(Some(1_100), 2_000).breaks(D2);
    }

    #[test]
    fn a_disappearance_is_not_excused_by_an_earlier_removal() {
        let mut history = HistoryBuilder::new();
        history.at(100).write_node("/s/a", 1, Some(10)).at(200).delete_path("/s/a", 1);
        history.at(300).write_node("/s/a", 2, Some(11)).at(350).view(3, "/s", 0);
        history.at(400).shown(3, &[("a", Some(11))]).at(500).shown(3, &[]).end(1_000).breaks(D2);
    }
}
