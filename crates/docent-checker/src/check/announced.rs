use crate::analysis::Analysis;
use crate::listings::{Offer, PAUSE, State, histories, offers};
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **Announced members are there, and those that left are not**: when a call says that the servers have a
/// number they had it; once all faults are over each instance and member is there with the number it said
/// last, owned by its client's session, unless another client wants the same node; and when a call said that
/// it is gone it is, and does not come back.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let offers = offers(&analysis.run.events);
    let histories = histories(analysis.run, offers.iter().map(|offer| offer.path), |key, path| key == path);
    for offer in &offers {
        let states = &histories[offer.path];
        let wrong = [
            told(analysis, offer, states),
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

fn told(analysis: &Analysis<'_>, offer: &Offer<'_>, states: &[State]) -> Option<Wrong> {
    let grain = analysis.tolerances().grain;
    offer.told.iter().find_map(|(at, number)| {
        let has = |state: &State| state.nodes.get(offer.path).is_some_and(|(_, is)| *is == Some(*number));
        let had = states.iter().take_while(|state| state.at <= *at + grain).any(has);
        (!had).then(|| (*at, format!("{number} is said to be announced, and never was:")))
    })
}

fn present(
    analysis: &Analysis<'_>,
    offer: &Offer<'_>,
    offers: &[Offer<'_>],
    states: &[State],
) -> Option<Wrong> {
    let (life, calm) = (analysis.life(offer.client)?, analysis.calm()?);
    let (wanted, number) = *offer.wants.last()?;
    let tolerances = analysis.tolerances();
    // The member that was there before may have died just now.
    let moment = tolerances.reconnect + tolerances.news + PAUSE + analysis.facts().expiry() * 2;
    let due = life.apart.quiet(wanted.max(calm), moment)?;
    let leaving = [offer.leaving, analysis.leaving(offer.client), Some(analysis.facts().end.at)];
    let rival = offers.iter().any(|other| {
        let over = [other.leaving, analysis.leaving(other.client)].into_iter().flatten().min();
        other.path == offer.path
            && other.client != offer.client
            && other.began() < due
            && over.is_none_or(|over| over > calm)
    });
    if rival || leaving.into_iter().flatten().min()? <= due {
        return None;
    }
    let state = states.iter().rev().find(|state| state.at <= due)?;
    let is = state.nodes.get(offer.path).and_then(|(_, is)| *is);
    let node = analysis.replay.node_at(offer.path, due).map(|index| &analysis.replay.nodes()[index]);
    let owner = node.and_then(|node| analysis.client_of(node.owner));
    let well = is == Some(number) && owner == Some(offer.client);
    (!well).then(|| (due, format!("{number} was said last, and {is:?} of {owner:?} is there:")))
}

/// It is there although it left.
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
    let mut there = nodes
        .filter(|node| node.created.at < until && node.gone.is_none_or(|gone| gone.when.at > left + grain));
    there
        .next()
        .filter(|_| until > left)
        .map(|node| (left.max(node.created.at), "is there after it left:".to_owned()))
}

#[cfg(test)]
mod tests {
    use crate::event::{Announcing, AttemptId, EventKind};
    use crate::history::{DiscoveryEvents, HistoryBuilder};
    use crate::violation::Invariant::D4;

    fn says(history: &mut HistoryBuilder, step: Announcing) -> &mut HistoryBuilder {
        history.tell(0, EventKind::Announced(AttemptId(1), step))
    }

    fn announced() -> HistoryBuilder {
        let mut history = HistoryBuilder::new();
        history.at(100).wants(0, 1, "/s/a", 10).at(105).write_node("/s/a", 1, Some(10));
        says(history.at(110), Announcing::Told(10));
        history
    }

    #[test]
    fn who_is_there_with_what_it_said_last_is_announced() {
        let mut history = announced();
        history.at(500).wants(0, 1, "/s/a", 11).at(505).write_again("/s/a", 1, Some(11));
        history.at(1_000).world(EventKind::Calm).end(90_000).holds();
    }

    #[test]
    fn what_is_told_and_never_was_there_is_caught() {
        let mut history = announced();
        history.at(500).wants(0, 1, "/s/a", 11);
        says(history.at(510), Announcing::Told(11)).end(1_000).breaks(D4);
    }

    #[test]
    fn who_is_missing_or_says_something_older_is_caught() {
        let mut history = announced();
        history.at(500).wants(0, 1, "/s/a", 11).at(1_000).world(EventKind::Calm).end(90_000).breaks(D4);
        let mut history = announced();
        history.at(500).delete_path("/s/a", 99).at(1_000).world(EventKind::Calm).end(90_000).breaks(D4);
    }

    #[test]
    fn of_two_who_want_the_same_one_waits() {
        let mut history = announced();
        history.at(500).wants(1, 2, "/s/a", 20).at(1_000).world(EventKind::Calm).end(90_000).holds();
    }

    #[test]
    fn who_left_and_is_gone_is_gone() {
        let mut history = announced();
        says(history.at(500), Announcing::Leaving).at(505).delete_path("/s/a", 1);
        says(history.at(510), Announcing::Left).at(600).wants(0, 2, "/s/a", 11);
        history.at(605).write_node("/s/a", 1, Some(11)).end(1_000).holds();
    }

    #[test]
    fn who_left_and_is_there_or_comes_back_is_caught() {
        let mut history = announced();
        says(history.at(500), Announcing::Leaving);
        says(history.at(510), Announcing::Left).end(1_000).breaks(D4);
        let mut history = announced();
        says(history.at(500), Announcing::Leaving).at(505).delete_path("/s/a", 1);
        says(history.at(510), Announcing::Left).at(600).write_node("/s/a", 1, Some(10)).end(1_000).breaks(D4);
    }
}
