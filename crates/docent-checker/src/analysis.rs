use crate::attempt_trace::AttemptTrace;
use crate::attempts::Attempts;
use crate::elections::Elections;
use crate::event::{AttemptId, ClientId, Event, EventKind, FaultKind};
use crate::faults::Faults;
use crate::journal::EndCause;
use crate::journal_replay::{Gone, JournalReplay, Moment, NodeLife, Remover};
use crate::queues::lock_of;
use crate::run::{Facts, Run, Tolerances};
use crate::rw_lines::RwLines;
use crate::spans::Spans;
use crate::timeline::{Link, Timeline};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Analysis of a run, with everything that invariants ask for, found out once.
#[derive(Debug)]
pub(crate) struct Analysis<'a> {
    pub(crate) run: &'a Run,
    pub(crate) replay: JournalReplay,
    /// Places in lines of readers and writers, with those that each waited for.
    pub(crate) rw_lines: RwLines,
    pub(crate) attempts: Attempts<'a>,
    pub(crate) elections: Elections<'a>,
    pub(crate) clients: BTreeMap<ClientId, Timeline>,
    /// Times at which there was no server.
    pub(crate) away: Spans,
    /// Clients by their sessions.
    owners: BTreeMap<i64, ClientId>,
    /// The attempts that were granted, by their node.
    holders: HashMap<usize, Vec<AttemptId>>,
}

/// End of a node, from the point of view of the client that owned it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The server ended its session for its silence.
    Expired,
    /// Somebody else ended its session or deleted it.
    Others,
    /// Its client ended it.
    Own,
}

impl<'a> Analysis<'a> {
    pub(crate) fn of(run: &'a Run) -> Self {
        let faults = Faults::of(&run.events, &run.facts);
        let clients = Timeline::all(&run.events, &faults, &run.facts);
        let attempts = Attempts::of(&run.events, &clients);
        let elections = Elections::of(&run.events);
        let owners = owners(run);
        // Tickets for the lock of a queue belong to its takes and deliveries: see `queues`.
        let ordered = run.facts.queues.iter().filter(|(_, rules)| rules.ordered);
        let replay =
            JournalReplay::apart_from(&run.journal, ordered.map(|(path, _)| lock_of(path)).collect());
        let rw_lines = RwLines::of(&replay);
        let away = faults.away();
        let holders = HashMap::new();
        let mut analysis =
            Self { run, replay, rw_lines, attempts, elections, clients, away, owners, holders };
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

    /// True when the run went on long enough to show an event that was due at `due`.
    pub(crate) fn shows(&self, due: Duration) -> bool {
        due <= self.run.facts.end.at
    }

    /// The events, each with its place in the record.
    pub(crate) fn events(&self) -> impl Iterator<Item = (usize, &'a Event)> {
        self.run.events.iter().enumerate()
    }

    /// Time at which all faults were over.
    pub(crate) fn calm(&self) -> Option<Duration> {
        self.run.events.iter().find(|event| event.kind == EventKind::Calm).map(|event| event.at)
    }

    pub(crate) fn client_of(&self, session: i64) -> Option<ClientId> {
        self.owners.get(&session).copied()
    }

    /// The sessions of a client.
    pub(crate) fn sessions_of(&self, client: ClientId) -> impl Iterator<Item = i64> {
        self.owners.iter().filter(move |(_, owner)| **owner == client).map(|(session, _)| *session)
    }

    pub(crate) fn life(&self, client: ClientId) -> Option<&Timeline> {
        self.clients.get(&client)
    }

    /// Time at which a client was gone or about to go.
    pub(crate) fn leaving(&self, client: ClientId) -> Option<Duration> {
        self.life(client).and_then(Timeline::leaving)
    }

    /// The state by which its client told the end of the generation of a grant. A client's words may lag
    /// behind its deeds, so the generation is that of the session.
    pub(crate) fn generation_end(&self, trace: &AttemptTrace<'_>) -> Option<Link> {
        let (_, grant) = trace.granted?;
        let life = self.life(trace.client)?;
        life.end_of(life.generation_of(grant.session)?)
    }

    /// The node of a hold, as the server knows it.
    pub(crate) fn node_of(&self, trace: &AttemptTrace<'_>) -> Option<(usize, &NodeLife)> {
        let (at, grant) = trace.granted?;
        let index = self.replay.node_at(&grant.node, at + self.tolerances().grain)?;
        Some((index, &self.replay.nodes()[index]))
    }

    /// The attempts that were granted by a node: one, if all is right.
    pub(crate) fn holders(&self, node: usize) -> &[AttemptId] {
        self.holders.get(&node).map_or(&[], Vec::as_slice)
    }

    /// Cause of a session's end. Where the journal does not say it, the record does.
    pub(crate) fn cause(&self, session: i64) -> Option<(Moment, EndCause)> {
        let (when, cause) = self.replay.sessions().get(&session)?.ended?;
        let cause = if cause == EndCause::Unknown { self.guess(session, when.at) } else { cause };
        Some((when, cause))
    }

    /// True when a server had said by then that the session is over.
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

    /// The end of a node that is gone.
    pub(crate) fn end_of(&self, node: &NodeLife, gone: Gone) -> End {
        match gone.by {
            Remover::EndOf(session) => match self.cause(session) {
                Some((_, EndCause::Forced)) => End::Others,
                Some((_, EndCause::Closed)) => End::Own,
                _ => End::Expired,
            },
            Remover::Session(session) if session == node.owner => End::Own,
            Remover::Session(session) => {
                let (owner, remover) = (self.client_of(node.owner), self.client_of(session));
                let same = owner.zip(remover).is_some_and(|(owner, remover)| owner == remover);
                if same { End::Own } else { End::Others }
            }
            Remover::Server => End::Others,
        }
    }

    /// Time by which the holder of a node that is gone has to know: `None` when its own client took the node
    /// away.
    ///
    /// A session that the server ends for its silence is lost to its holders before that, unless their
    /// process stands still: then they know as soon as it goes on. Of a node that somebody else takes away
    /// they learn as news, or by their lease when no news comes through.
    pub(crate) fn notice(&self, client: ClientId, node: &NodeLife) -> Option<Duration> {
        let gone = node.gone?;
        let at = gone.when.at;
        let life = self.life(client)?;
        let Tolerances { grain, news, scheduling, reconnect, head_start, .. } = *self.tolerances();
        let due = match self.end_of(node, gone) {
            End::Own => return None,
            End::Expired => at.saturating_sub(head_start) + grain,
            End::Others if life.rough.spare(at.saturating_sub(reconnect), at + news) => at + news,
            End::Others => {
                let lease = at + self.facts().timeout;
                life.rough.quiet(at, news + reconnect).map_or(lease, |quiet| quiet.min(lease))
            }
        };
        // A process that woke up just before gets the time to look.
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
