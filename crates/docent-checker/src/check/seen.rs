use crate::analysis::Analysis;
use crate::event::Way;
use crate::listings::{State, firsts, histories};
use crate::publications::{Publication, publications};
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeMap;
use std::time::Duration;

/// **No unseen value is overwritten**: a value that is published over the seen value replaces that value and
/// no other. A value that is published if none exists is the first one.
///
/// If the node was deleted and re-created during the call, the servers compare only the version: not checked.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let publications = publications(&analysis.run.events);
    let paths = publications.iter().map(|publication| publication.path);
    let histories = histories(analysis.run, paths, |key, path| key == path);
    let firsts: BTreeMap<_, _> = histories.iter().map(|(path, states)| (*path, firsts(states))).collect();
    for publication in &publications {
        let Way::ReplaceSeen { number, seen } = publication.way else { continue };
        let written = firsts[publication.path].get(&(publication.path, Some(number)));
        let Some(place) = written else { continue };
        if let Some((at, what)) = wrong(publication, &histories[publication.path][..=*place], seen) {
            let violation = Violation::new(Invariant::C4, at, what).attempt(publication.id);
            found.push(violation.client(publication.client).path(publication.path));
        }
    }
}

/// Violation by the last of these states, which the publication wrote.
fn wrong(publication: &Publication<'_>, states: &[State], seen: Option<i64>) -> Option<(Duration, String)> {
    let value = |state: &State| state.nodes.get(publication.path).copied();
    let (written, before) = states.split_last()?;
    let replaced = before.last().and_then(value).map(|(zxid, _)| zxid);
    let mut meanwhile = before.iter().rev().take_while(|state| state.at >= publication.began);
    let well = replaced == seen || meanwhile.any(|state| value(state).is_none());
    (!well).then(|| (written.at, format!("{replaced:x?} was overwritten, but {seen:x?} was seen:")))
}

#[cfg(test)]
mod tests {
    use crate::event::{Outcome, Way};
    use crate::history::{ConfigEvents, HistoryBuilder};
    use crate::violation::Invariant::C4;

    /// The first value was seen. If `other` is true, another client publishes meanwhile.
    fn replaced(other: bool) -> HistoryBuilder {
        let mut history = HistoryBuilder::new();
        history.at(100).write_node("/c", 0, Some(1));
        let seen = Some(history.last_zxid());
        history.at(200).publish(0, 7, "/c", Way::ReplaceSeen { number: 2, seen });
        if other {
            history.at(205).write_again("/c", 0, Some(9));
        }
        history.at(210).write_again("/c", 0, Some(2));
        history.at(300).published(0, 7, Outcome::Applied(None)).end(1_000)
    }

    #[test]
    fn a_value_that_was_seen_is_replaced() {
        replaced(false).holds();
    }

    #[test]
    fn a_replaced_value_that_was_not_seen_is_caught() {
        replaced(true).breaks(C4);
    }

    #[test]
    fn a_new_value_that_replaces_another_is_caught() {
        let new = |exists: bool| {
            let mut history = HistoryBuilder::new();
            if exists {
                history.at(100).write_node("/c", 0, Some(1));
            }
            history.at(200).publish(0, 7, "/c", Way::ReplaceSeen { number: 2, seen: None });
            history.at(210).write_again("/c", 0, Some(2));
            history.at(300).published(0, 7, Outcome::Applied(None)).end(1_000)
        };
        new(false).holds();
        new(true).breaks(C4);
    }
}
