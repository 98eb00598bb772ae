use crate::analysis::Analysis;
use crate::listings::{Offer, PAUSE, State, histories, offers};
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **Announced members exist, and members that left do not.**
///
/// - If a call reports that the servers have a member's number, they had it.
/// - After all faults have ended, each instance and member exists with its latest number, owned by its
///   client's session, unless another client announces the same node.
/// - If a call reports that a member was removed, its node is deleted and does not return.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let offers = offers(&analysis.run.events);
    let histories = histories(analysis.run, offers.iter().map(|offer| offer.path), |key, path| key == path);
    for offer in &offers {
        let states = &histories[offer.path];
        let wrong = [
            unwritten(analysis, offer, states),
            present(analysis, offer, &offers, states),
            absent(analysis, offer, &offers),
        ];
        found.extend(
            wrong.into_iter().flatten().map(|(at, what)| {
                Violation::new(Invariant::D4, at, what).client(offer.client).path(offer.path)
            }),
        );
    }
}

type Wrong = (Duration, String);

fn unwritten(analysis: &Analysis<'_>, offer: &Offer<'_>, states: &[State]) -> Option<Wrong> {
    let grain = analysis.tolerances().grain;
    offer.written.iter().find_map(|(at, number)| {
        let has = |state: &State| state.nodes.get(offer.path).is_some_and(|(_, is)| *is == Some(*number));
        let had = states.iter().take_while(|state| state.at <= *at + grain).any(has);
        (!had).then(|| (*at, format!("{number} was reported as announced, but never was:")))
    })
}

fn present(
    analysis: &Analysis<'_>,
    offer: &Offer<'_>,
    offers: &[Offer<'_>],
    states: &[State],
) -> Option<Wrong> {
    let (life, calm) = (analysis.life(offer.client)?, analysis.calm()?);
    let (wanted, number) = *offer.requests.last()?;
    let tolerances = analysis.tolerances();
    // The previous owner of the node may have died just now.
    let moment = tolerances.reconnect + tolerances.notification + PAUSE + analysis.facts().expiry() * 2;
    let due = life.apart.quiet(wanted.max(calm), moment)?;
    let leaving = [offer.leaving, analysis.leaving(offer.client), Some(analysis.facts().end.at)];
    let rival = offers.iter().any(|other| {
        let end = [other.leaving, analysis.leaving(other.client)].into_iter().flatten().min();
        other.path == offer.path
            && other.client != offer.client
            && other.began() < due
            && end.is_none_or(|end| end > calm)
    });
    if rival || leaving.into_iter().flatten().min()? <= due {
        return None;
    }
    let state = states.iter().rev().find(|state| state.at <= due)?;
    let is = state.nodes.get(offer.path).and_then(|(_, is)| *is);
    let node = analysis.replay.node_at(offer.path, due).map(|index| &analysis.replay.nodes()[index]);
    let owner = node.and_then(|node| analysis.client_of(node.owner));
    let well = is == Some(number) && owner == Some(offer.client);
    (!well).then(|| (due, format!("{number} is the latest, but {is:?} of {owner:?} exists:")))
}

/// Finds a node that exists although its member left.
fn absent(analysis: &Analysis<'_>, offer: &Offer<'_>, offers: &[Offer<'_>]) -> Option<Wrong> {
    let (left, leaving) = (offer.left?, offer.leaving?);
    let grain = analysis.tolerances().grain;
    let again = offers
        .iter()
        .filter(|other| other.path == offer.path && other.client == offer.client && other.began() >= leaving)
        .map(Offer::began)
        .min();
    let until = again.unwrap_or(Duration::MAX);
    let nodes = analysis
        .replay
        .nodes()
        .iter()
        .filter(|node| node.path == offer.path && analysis.client_of(node.owner) == Some(offer.client));
    let mut nodes_after = nodes.filter(|node| {
        node.created.at < until && node.deleted.is_none_or(|deleted| deleted.when.at > left + grain)
    });
    nodes_after
        .next()
        .filter(|_| until > left)
        .map(|node| (left.max(node.created.at), "still exists after its member left:".to_owned()))
}

#[cfg(test)]
mod tests {
    use crate::event::{Announcing, AttemptId, EventKind};
    use crate::history::{DiscoveryEvents, HistoryBuilder};
    use crate::violation::Invariant::D4;

    fn announcing(history: &mut HistoryBuilder, step: Announcing) -> &mut HistoryBuilder {
        history.record(0, EventKind::Announced(AttemptId(1), step))
    }

    fn announced() -> HistoryBuilder {
        let mut history = HistoryBuilder::new();
        history.at(100).request(0, 1, "/s/a", 10).at(105).write_node("/s/a", 1, Some(10));
        announcing(history.at(110), Announcing::Written(10));
        history
    }

    #[test]
    fn an_instance_whose_node_has_its_latest_data_is_announced() {
        let mut history = announced();
        history.at(500).request(0, 1, "/s/a", 11).at(505).write_again("/s/a", 1, Some(11));
        history.at(1_000).world(EventKind::Calm).end(90_000).holds();
    }

    #[test]
    fn data_that_is_reported_as_published_but_never_was_is_caught() {
        let mut history = announced();
        history.at(500).request(0, 1, "/s/a", 11);
        announcing(history.at(510), Announcing::Written(11)).end(1_000).breaks(D4);
    }

    #[test]
    fn a_missing_node_or_outdated_data_is_caught() {
        let mut history = announced();
        history.at(500).request(0, 1, "/s/a", 11).at(1_000).world(EventKind::Calm).end(90_000).breaks(D4);
        let mut history = announced();
        history.at(500).delete_path("/s/a", 99).at(1_000).world(EventKind::Calm).end(90_000).breaks(D4);
    }

    #[test]
    fn one_of_two_instances_of_the_same_name_waits() {
        let mut history = announced();
        history.at(500).request(1, 2, "/s/a", 20).at(1_000).world(EventKind::Calm).end(90_000).holds();
    }

    #[test]
    fn a_deregistered_instance_without_a_node_is_right() {
        let mut history = announced();
        announcing(history.at(500), Announcing::Leaving).at(505).delete_path("/s/a", 1);
        announcing(history.at(510), Announcing::Left).at(600).request(0, 2, "/s/a", 11);
        history.at(605).write_node("/s/a", 1, Some(11)).end(1_000).holds();
    }

    #[test]
    fn a_deregistered_instance_whose_node_stays_or_returns_is_caught() {
        let mut history = announced();
        announcing(history.at(500), Announcing::Leaving);
        announcing(history.at(510), Announcing::Left).end(1_000).breaks(D4);
        let mut history = announced();
        announcing(history.at(500), Announcing::Leaving).at(505).delete_path("/s/a", 1);
        announcing(history.at(510), Announcing::Left)
            .at(600)
            .write_node("/s/a", 1, Some(10))
            .end(1_000)
            .breaks(D4);
    }
}
