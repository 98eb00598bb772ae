use crate::event::{AttemptId, ClientId, Event, EventKind, Meeting};
use crate::journal_replay::{JournalReplay, Moment, NodeLife};
use crate::run::Tolerances;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Recorded facts about one member of a double barrier.
#[derive(Debug)]
pub(crate) struct Member<'a> {
    pub(crate) id: AttemptId,
    pub(crate) client: ClientId,
    pub(crate) path: &'a str,
    /// Number of members that the barrier requires.
    pub(crate) members: u32,
    pub(crate) arrived: Duration,
    /// Time at which the member entered, and its node.
    pub(crate) entered: Option<(Duration, &'a str)>,
    pub(crate) leaving: Option<Duration>,
    /// Time at which `leave` succeeded.
    pub(crate) left: Option<Duration>,
}

/// The members of all double barriers of a run, in the order in which they arrived.
pub(crate) fn members(events: &[Event]) -> Vec<Member<'_>> {
    let mut members: BTreeMap<AttemptId, Member<'_>> = BTreeMap::new();
    for event in events {
        let (EventKind::Met(id, meeting), Some(client)) = (&event.kind, event.client) else { continue };
        if let Meeting::Arrived { path, members: required } = meeting {
            let member = Member {
                id: *id,
                client,
                path,
                members: *required,
                arrived: event.at,
                entered: None,
                leaving: None,
                left: None,
            };
            members.insert(*id, member);
        } else if let Some(member) = members.get_mut(id) {
            match meeting {
                Meeting::Entered(node) => member.entered = Some((event.at, node)),
                Meeting::Leaving => member.leaving = Some(event.at),
                Meeting::Left { ok: true } => member.left = Some(event.at),
                Meeting::Arrived { .. } | Meeting::Left { ok: false } | Meeting::GaveUp => {}
            }
        }
    }
    members.into_values().collect()
}

/// The nodes of a double barrier's members, existing and deleted, in the order of their creation.
pub(crate) struct Room<'s> {
    pub(crate) nodes: Vec<(usize, &'s NodeLife)>,
}

impl<'s> Room<'s> {
    pub(crate) fn of(replay: &'s JournalReplay, path: &str) -> Self {
        let all = replay.nodes().iter().enumerate();
        Self { nodes: all.filter(|(_, node)| node.folder() == path && node.is_members()).collect() }
    }

    /// The members that were present while at least `members` were, each with the first such moment.
    pub(crate) fn full(&self, members: u32) -> HashMap<usize, Moment> {
        let mut steps: Vec<(Moment, bool, usize)> = Vec::new();
        for (index, node) in &self.nodes {
            steps.push((node.created, true, *index));
            steps.extend(node.deleted.map(|deleted| (deleted.when, false, *index)));
        }
        steps.sort_unstable();
        let (mut present, mut full) = (Vec::new(), HashMap::new());
        for transaction in steps.chunk_by(|one, other| one.0.zxid == other.0.zxid) {
            for (_, joins, index) in transaction {
                if *joins { present.push(*index) } else { present.retain(|other| other != index) }
            }
            if present.len() >= members as usize {
                for index in &present {
                    full.entry(*index).or_insert(transaction[0].0);
                }
            }
        }
        full
    }

    /// Spans of time in which at least `members` members were present.
    pub(crate) fn crowds(&self, members: u32) -> Vec<(Moment, Option<Moment>)> {
        let mut steps: Vec<(Moment, i64)> = Vec::new();
        for (_, node) in &self.nodes {
            steps.push((node.created, 1));
            steps.extend(node.deleted.map(|deleted| (deleted.when, -1)));
        }
        steps.sort_unstable();
        let mut crowds: Vec<(Moment, Option<Moment>)> = Vec::new();
        let mut count = 0;
        for transaction in steps.chunk_by(|one, other| one.0.zxid == other.0.zxid) {
            let was_enough = count >= i64::from(members);
            count += transaction.iter().map(|(_, step)| step).sum::<i64>();
            match (was_enough, count >= i64::from(members)) {
                (false, true) => crowds.push((transaction[0].0, None)),
                (true, false) => {
                    if let Some((_, end)) = crowds.last_mut() {
                        *end = Some(transaction[0].0);
                    }
                }
                _ => {}
            }
        }
        crowds
    }

    /// All nodes that were created at a path by the given time.
    pub(crate) fn lives(
        &self,
        path: &str,
        by: Duration,
        tolerances: &Tolerances,
    ) -> impl Iterator<Item = (usize, &'s NodeLife)> {
        let by = by + tolerances.grain;
        self.nodes.iter().copied().filter(move |(_, node)| node.path == path && node.created.at <= by)
    }
}
