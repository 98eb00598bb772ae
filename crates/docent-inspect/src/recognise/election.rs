use super::contenders::{Markers, contenders};
use super::found::{Found, writers};
use crate::nodes::Place;
use crate::report::{Contender, Election, ElectionLayout, Kind, Recipe};
use docent_core::Role;
use docent_election::internals::term;
use std::net::IpAddr;

/// Candidates of a leader latch.
const LATCH: &Markers = &[("latch-", Role::Exclusive)];

/// Candidates of a leader selector, which have the names of a mutex's contenders.
const SELECTOR: &Markers = &[("lock-", Role::Exclusive)];

/// Recognises an election by its layout, or by the ids of its candidates.
pub(super) fn election(place: &Place<'_>) -> Option<Found> {
    let latch = contenders(place, LATCH);
    if !latch.is_empty() {
        return Some(found(place, ElectionLayout::LeaderLatch, latch));
    }
    let selector = contenders(place, SELECTOR);
    if !selector.is_empty() && (place.own_data().and_then(term).is_some() || selector.iter().any(has_id)) {
        return Some(found(place, ElectionLayout::LeaderSelector, selector).may_be([Kind::Mutex]));
    }
    None
}

/// Returns true if a node holds an id other than a library's default: Docent's host and process, or Curator's
/// address.
fn has_id(contender: &Contender) -> bool {
    let text = contender.identity.as_ref().and_then(|identity| identity.as_str());
    text.is_some_and(|text| contender.client.is_none() && text.parse::<IpAddr>().is_err())
}

fn found(place: &Place<'_>, layout: ElectionLayout, mut contenders: Vec<Contender>) -> Found {
    let writers = writers(&contenders);
    let candidates = contenders.split_off(1);
    let term = place.own_data().and_then(term);
    let leader = contenders.pop();
    Found::new(Recipe::Election(Election { layout, leader, candidates, term })).by(writers)
}
