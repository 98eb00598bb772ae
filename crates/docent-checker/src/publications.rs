use crate::event::{AttemptId, ClientId, Event, EventKind, Following, Outcome, Publishing, Way};
use std::collections::BTreeMap;
use std::time::Duration;

/// Recorded facts about one call that changes a published value.
#[derive(Debug)]
pub(crate) struct Publication<'a> {
    pub(crate) id: AttemptId,
    pub(crate) client: ClientId,
    pub(crate) path: &'a str,
    pub(crate) way: Way,
    pub(crate) began: Duration,
    pub(crate) done: Option<Duration>,
    pub(crate) outcome: Outcome,
}

impl Publication<'_> {
    /// The number that the call publishes, if there is one.
    pub(crate) fn number(&self) -> Option<u64> {
        match self.way {
            Way::Replace(number) | Way::ReplaceSeen { number, .. } | Way::Republish(number) => Some(number),
            Way::Delete | Way::Count => None,
        }
    }
}

/// Recorded facts about one follower of a value.
#[derive(Debug)]
pub(crate) struct Follower<'a> {
    pub(crate) client: ClientId,
    pub(crate) path: &'a str,
    pub(crate) began: Duration,
    pub(crate) steps: Vec<(Duration, &'a Following)>,
    pub(crate) stopped: Option<Duration>,
}

/// All calls, in the order in which they began.
pub(crate) fn publications(events: &[Event]) -> Vec<Publication<'_>> {
    let mut all: BTreeMap<AttemptId, Publication<'_>> = BTreeMap::new();
    for event in events {
        let (EventKind::Published(id, step), Some(client)) = (&event.kind, event.client) else { continue };
        match step {
            Publishing::Began { path, way } => {
                let (began, outcome) = (event.at, Outcome::Unknown);
                let new = Publication { id: *id, client, path, way: *way, began, done: None, outcome };
                all.insert(*id, new);
            }
            Publishing::Done(outcome) => {
                if let Some(publication) = all.get_mut(id) {
                    (publication.done, publication.outcome) = (Some(event.at), *outcome);
                }
            }
        }
    }
    all.into_values().collect()
}

/// The followers, in the order in which they began.
pub(crate) fn followers(events: &[Event]) -> Vec<Follower<'_>> {
    let mut all: BTreeMap<AttemptId, Follower<'_>> = BTreeMap::new();
    for event in events {
        let (EventKind::Followed(id, step), Some(client)) = (&event.kind, event.client) else { continue };
        match step {
            Following::Begins(path) => {
                let new = Follower { client, path, began: event.at, steps: Vec::new(), stopped: None };
                all.insert(*id, new);
            }
            step => {
                let Some(follower) = all.get_mut(id) else { continue };
                match step {
                    Following::Stopped => follower.stopped = Some(event.at),
                    step => follower.steps.push((event.at, step)),
                }
            }
        }
    }
    all.into_values().collect()
}
