use super::close::is_mark;
use crate::analysis::Analysis;
use crate::event::Listed;
use crate::listings::{PAUSE, State, View, histories, is_in, views};
use crate::violation::{Found, Invariant, Violation};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// **Views** of a folder show its content:
///
/// - Everything that is shown was written.
/// - After a value of a node, no earlier value of it is shown.
/// - After all faults have ended and nothing changes any more, exactly the nodes of the folder are shown,
///   with their latest values. A node that cannot be read is shown as unreadable.
///
/// `Service` and `Members` guarantee this.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let views = views(&analysis.run.events);
    let histories = histories(analysis.run, views.iter().map(|view| view.folder), is_in);
    let written: BTreeSet<(&str, Option<u64>)> =
        analysis.facts().written.iter().map(|write| (&*write.path, write.number)).collect();
    for view in &views {
        let wrong = [truth(view, &written), order(view), end(analysis, view, &histories[view.folder])];
        found.extend(
            wrong.into_iter().flatten().map(|(at, what)| {
                Violation::new(Invariant::D1, at, what).client(view.client).path(view.folder)
            }),
        );
    }
}

type Wrong = (Duration, String);

/// Finds a shown value that was never written.
fn truth(view: &View<'_>, written: &BTreeSet<(&str, Option<u64>)>) -> Option<Wrong> {
    view.shown.iter().find_map(|(at, listed)| {
        let was_written = |one: &&Listed| {
            let path = format!("{}/{}", view.folder, one.name);
            written.contains(&(&*path, one.number))
        };
        let invented = listed.iter().find(|one| !was_written(one))?;
        Some((
            *at,
            format!("{:?} is shown as {:?}, which was never written:", invented.name, invented.number),
        ))
    })
}

/// Finds an older value that was shown after a newer one.
fn order(view: &View<'_>) -> Option<Wrong> {
    let mut newest: BTreeMap<&str, i64> = BTreeMap::new();
    view.shown.iter().find_map(|(at, listed)| {
        listed.iter().find_map(|one| {
            let zxid = one.zxid?;
            let newest = newest.entry(&one.name).or_insert(zxid);
            let before = std::mem::replace(newest, zxid);
            (zxid < before).then(|| (*at, format!("{:?} goes back from {before:#x} to {zxid:#x}:", one.name)))
        })
    })
}

/// Finds a view that does not show the folder's nodes, although the folder no longer changes.
fn end(analysis: &Analysis<'_>, view: &View<'_>, states: &[State]) -> Option<Wrong> {
    let (life, calm) = (analysis.life(view.client)?, analysis.calm()?);
    let tolerances = analysis.tolerances();
    let moment = tolerances.reconnect + tolerances.notification + PAUSE + view.grace;
    let last_due = [view.stopped, analysis.leaving(view.client), Some(analysis.facts().end.at)]
        .into_iter()
        .flatten()
        .min()?;
    states.iter().enumerate().find_map(|(place, state)| {
        let next = states.get(place + 1).map_or(Duration::MAX, |next| next.at);
        let due = life.apart.quiet(state.at.max(calm).max(view.opened), moment)?;
        if due + tolerances.grain >= next.min(last_due) {
            return None;
        }
        let shown = view.shown.iter().rev().find(|(at, _)| *at <= due).map(|(_, listed)| names(listed));
        let is = names_of(state, view.folder);
        (shown.as_ref() != Some(&is)).then(|| (due, format!("the folder has {is:?}, but shows {shown:?}:")))
    })
}

fn names(listed: &[Listed]) -> BTreeMap<&str, Option<u64>> {
    listed.iter().map(|one| (&*one.name, one.number)).collect()
}

fn names_of<'a>(state: &'a State, folder: &str) -> BTreeMap<&'a str, Option<u64>> {
    let names = state.nodes.iter().map(|(path, (_, number))| (&path[folder.len() + 1..], *number));
    // Views do not show the clients' own folders.
    names.filter(|(name, _)| !is_mark(name)).collect()
}

#[cfg(test)]
mod tests {
    use crate::event::EventKind;
    use crate::history::{DiscoveryEvents, HistoryBuilder};
    use crate::violation::Invariant::D1;

    /// Two instances and an unreadable node. The first instance is updated at 2 s. All faults have ended from
    /// 3 s on.
    fn folder() -> HistoryBuilder {
        let mut history = HistoryBuilder::new();
        history.at(100).write_node("/s/a", 1, Some(10)).write_node("/s/b", 2, Some(20));
        history.write_node("/s/bad", 0, None);
        history.at(500).view(3, "/s", 0);
        history
    }

    fn shown(last: &[(&str, Option<u64>)]) -> HistoryBuilder {
        let mut history = folder();
        history.at(520).shown(3, &[("a", Some(10)), ("b", Some(20)), ("bad", None)]);
        history.at(2_000).write_again("/s/a", 1, Some(11));
        history.at(2_010).shown(3, last);
        history.at(3_000).world(EventKind::Calm).end(60_000)
    }

    #[test]
    fn a_complete_view_is_right() {
        shown(&[("a", Some(11)), ("b", Some(20)), ("bad", None)]).holds();
    }

    #[test]
    fn an_outdated_view_is_caught() {
        shown(&[("a", Some(10)), ("b", Some(20)), ("bad", None)]).breaks(D1);
        shown(&[("a", Some(11)), ("bad", None)]).breaks_also(D1);
        shown(&[("a", Some(11)), ("b", Some(20))]).breaks_also(D1);
        folder().at(3_000).world(EventKind::Calm).end(60_000).breaks(D1);
    }

    #[test]
    fn data_that_was_never_written_is_caught() {
        let mut history = folder();
        history.at(520).shown(3, &[("a", Some(12))]).end(1_000).breaks(D1);
    }

    #[test]
    fn a_view_that_goes_backwards_is_caught() {
        let mut history = folder();
        let one = |number| vec![("a", Some(number))];
        history.at(600).write_again("/s/a", 1, Some(11));
        history.at(610).shown(3, &one(11)).at(620).shown(3, &one(10)).end(1_000).breaks(D1);
    }
}
