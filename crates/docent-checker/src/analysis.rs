use crate::attempt_trace::AttemptTrace;
use crate::attempts::Attempts;
use crate::elections::Elections;
use crate::event::{AttemptId, ClientId, Event, EventKind, FaultKind};
use crate::faults::Faults;
use crate::journal::EndCause;
use crate::journal_replay::{Deletion, JournalReplay, Moment, NodeLife, Remover};
use crate::queues::lock_of;
use crate::run::{Facts, Run, Tolerances};
use crate::rw_lines::RwLines;
use crate::spans::Spans;
use crate::timeline::{Link, Timeline};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// A run together with everything that several invariants need, computed once.
#[derive(Debug)]
pub(crate) struct Analysis<'a> {
    pub(crate) run: &'a Run,
    pub(crate) replay: JournalReplay,
    /// Places in the lines of readers and writers, each with the places that it waited for.
    pub(crate) rw_lines: RwLines,
    pub(crate) attempts: Attempts<'a>,
    pub(crate) elections: Elections<'a>,
    pub(crate) clients: BTreeMap<ClientId, Timeline>,
    /// Times at which no server could end a session.
    pub(crate) outages: Spans,
    /// The client of each session.
    owners: BTreeMap<i64, ClientId>,
    /// Attempts that were granted, by the index of their node.
    holders: HashMap<usize, Vec<AttemptId>>,
}

/// Reason for which a node ended, from the point of view of the client that owned it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The session expired.
    Expired,
    /// A third party deleted the node or ended its session.
    ThirdParty,
    /// The node's own client deleted it or closed the session.
    Own,
}

impl<'a> Analysis<'a> {
    pub(crate) fn of(run: &'a Run) -> Self {
        let faults = Faults::of(&run.events, &run.facts);
        let clients = Timeline::all(&run.events, &faults, &run.facts);
        let attempts = Attempts::of(&run.events, &clients);
        let elections = Elections::of(&run.events);
        let owners = owners(run);
        // The checks of queues handle tickets for the lock of an ordered queue: see `queues`.
        let ordered = run.facts.queues.iter().filter(|(_, rules)| rules.ordered);
        let replay =
            JournalReplay::apart_from(&run.journal, ordered.map(|(path, _)| lock_of(path)).collect());
        let rw_lines = RwLines::of(&replay);
        let outages = faults.outages();
        let holders = HashMap::new();
        let mut analysis =
            Self { run, replay, rw_lines, attempts, elections, clients, outages, owners, holders };
        analysis.holders = analysis.map_holders();
        analysis
    }

    fn map_holders(&self) -> HashMap<usize, Vec<AttemptId>> {
        let mut holders: HashMap<usize, Vec<AttemptId>> = HashMap::new();
        for trace in self.attempts.all() {
            if let Some((node, _)) = self.node_of(trace) {
                holders.entry(node).or_default().push(trace.id());
            }
        }
        holders
    }

    pub(crate) fn facts(&self) -> &'a Facts {
        &self.run.facts
    }

    pub(crate) fn tolerances(&self) -> &'a Tolerances {
        &self.run.facts.tolerances
    }

    /// Returns true if the run lasted long enough to show an event that was due at `due`.
    pub(crate) fn shows(&self, due: Duration) -> bool {
        due <= self.run.facts.end.at
    }

    /// The events, each with its index in the record.
    pub(crate) fn events(&self) -> impl Iterator<Item = (usize, &'a Event)> {
        self.run.events.iter().enumerate()
    }

    /// Time at which all faults had ended.
    pub(crate) fn calm(&self) -> Option<Duration> {
        self.run.events.iter().find(|event| event.kind == EventKind::Calm).map(|event| event.at)
    }

    pub(crate) fn client_of(&self, session: i64) -> Option<ClientId> {
        self.owners.get(&session).copied()
    }

    pub(crate) fn sessions_of(&self, client: ClientId) -> impl Iterator<Item = i64> {
        self.owners.iter().filter(move |(_, owner)| **owner == client).map(|(session, _)| *session)
    }

    pub(crate) fn life(&self, client: ClientId) -> Option<&Timeline> {
        self.clients.get(&client)
    }

    /// Time at which a client crashed or began to close.
    pub(crate) fn leaving(&self, client: ClientId) -> Option<Duration> {
        self.life(client).and_then(Timeline::leaving)
    }

    /// The connection state that reported the end of the generation in which an attempt was granted.
    ///
    /// Reports may lag behind grants, so the generation is looked up by the session of the grant.
    pub(crate) fn generation_end(&self, trace: &AttemptTrace<'_>) -> Option<Link> {
        let (_, grant) = trace.granted?;
        let life = self.life(trace.client)?;
        life.end_of(life.generation_of(grant.session)?)
    }

    /// The node of a granted attempt, as it was on the server.
    pub(crate) fn node_of(&self, trace: &AttemptTrace<'_>) -> Option<(usize, &NodeLife)> {
        let (at, grant) = trace.granted?;
        let index = self.replay.node_at(&grant.node, at + self.tolerances().grain)?;
        Some((index, &self.replay.nodes()[index]))
    }

    /// Attempts that were granted on a node. A correct run has at most one.
    pub(crate) fn holders(&self, node: usize) -> &[AttemptId] {
        self.holders.get(&node).map_or(&[], Vec::as_slice)
    }

    /// Cause of a session's end. If the journal does not contain the cause, the record of faults decides.
    pub(crate) fn cause(&self, session: i64) -> Option<(Moment, EndCause)> {
        let (when, cause) = self.replay.sessions().get(&session)?.ended?;
        let cause = if cause == EndCause::Unknown { self.guess(session, when.at) } else { cause };
        Some((when, cause))
    }

    /// Returns true if a server had reported by `by` that the session is over.
    pub(crate) fn was_denied(&self, session: i64, by: Duration) -> bool {
        let opened = self.replay.sessions().get(&session).map(|session| session.opened.at);
        let Some((client, opened)) = self.client_of(session).zip(opened) else { return false };
        self.run.events.iter().any(|event| {
            event.kind == EventKind::Fault(FaultKind::Denied)
                && event.client.is_some_and(|other| other.number == client.number)
                && (opened..=by).contains(&event.at)
        })
    }

    fn guess(&self, session: i64, at: Duration) -> EndCause {
        let grain = self.tolerances().grain;
        let Some(client) = self.client_of(session) else { return EndCause::Expired };
        let forced = |event: &Event| {
            event.kind == EventKind::Fault(FaultKind::Expired)
                && event.client.is_some_and(|other| other.number == client.number)
                && event.at.abs_diff(at) <= grain
        };
        let closing = self.life(client).and_then(|life| life.closing);
        if self.run.events.iter().any(forced) {
            EndCause::Forced
        } else if closing.is_some_and(|closing| closing <= at + grain) {
            EndCause::Closed
        } else {
            EndCause::Expired
        }
    }

    /// Reason for which a deleted node ended.
    pub(crate) fn end_of(&self, node: &NodeLife, deleted: Deletion) -> End {
        match deleted.by {
            Remover::EndOf(session) => match self.cause(session) {
                Some((_, EndCause::Forced)) => End::ThirdParty,
                Some((_, EndCause::Closed)) => End::Own,
                _ => End::Expired,
            },
            Remover::Session(session) if session == node.owner => End::Own,
            Remover::Session(session) => {
                let (owner, remover) = (self.client_of(node.owner), self.client_of(session));
                let same = owner.zip(remover).is_some_and(|(owner, remover)| owner == remover);
                if same { End::Own } else { End::ThirdParty }
            }
            Remover::Server => End::ThirdParty,
        }
    }

    /// Time by which the holder of a deleted node must know of the deletion; `None` if its own client deleted
    /// the node.
    ///
    /// The holders of a session that expires must know before the expiry, unless their process is paused:
    /// then they must know as soon as the process resumes. If a third party deletes the node, its holder is
    /// notified. If no notification gets through, the holder's lease ends.
    pub(crate) fn notice(&self, client: ClientId, node: &NodeLife) -> Option<Duration> {
        let deleted = node.deleted?;
        let at = deleted.when.at;
        let life = self.life(client)?;
        let Tolerances { grain, notification, scheduling, reconnect, head_start, .. } = *self.tolerances();
        let due = match self.end_of(node, deleted) {
            End::Own => return None,
            End::Expired => at.saturating_sub(head_start) + grain,
            End::ThirdParty if life.rough.spare(at.saturating_sub(reconnect), at + notification) => {
                at + notification
            }
            End::ThirdParty => {
                let lease = at + self.facts().timeout;
                life.rough.quiet(at, notification + reconnect).map_or(lease, |quiet| quiet.min(lease))
            }
        };
        // A process that has just resumed gets time to notice.
        let woke =
            life.frozen.last_by(due).map_or(due, |frozen| due.max(frozen.until.saturating_add(scheduling)));
        Some(life.awake(woke, scheduling))
    }
}

fn owners(run: &Run) -> BTreeMap<i64, ClientId> {
    let mut owners = run.facts.sessions.clone();
    for event in &run.events {
        let session = match &event.kind {
            EventKind::Connection { session, .. } => *session,
            EventKind::Granted(_, grant) => Some(grant.session),
            _ => None,
        };
        if let (Some(session), Some(client)) = (session.filter(|session| *session != 0), event.client) {
            owners.entry(session).or_insert(client);
        }
    }
    owners
}
