use crate::event::{ClientId, Event, EventKind, LinkState};
use crate::faults::Faults;
use crate::run::Facts;
use crate::spans::{Span, Spans};
use std::collections::BTreeMap;
use std::time::Duration;

/// One life of a client, from its start to its crash or close.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    pub(crate) crashed: Option<Duration>,
    pub(crate) closing: Option<Duration>,
    pub(crate) closed: Option<Duration>,
    /// States that the client's watcher reported, in order.
    pub(crate) links: Vec<Link>,
    /// Times at which a recorded fault affected the client or its link.
    pub(crate) rough: Spans,
    /// Times at which a fault affected the client, or the client reported that it was not connected.
    pub(crate) apart: Spans,
    /// Times at which the client was connected by links on which servers granted a shorter timeout, so that
    /// it may not get a lease.
    pub(crate) short: Spans,
    /// Times at which the client's process was paused.
    pub(crate) frozen: Spans,
}

/// A state of a client's connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    pub(crate) at: Duration,
    /// Index in the record.
    pub(crate) index: usize,
    pub(crate) state: LinkState,
    pub(crate) generation: u64,
    pub(crate) suspensions: u64,
    pub(crate) session: Option<i64>,
}

impl Timeline {
    /// The lives of all clients.
    pub(crate) fn all(events: &[Event], faults: &Faults, facts: &Facts) -> BTreeMap<ClientId, Self> {
        let mut lives: BTreeMap<ClientId, Self> = BTreeMap::new();
        for (index, event) in events.iter().enumerate() {
            if let Some(client) = event.client {
                lives.entry(client).or_default().note(index, event);
            }
        }
        for (client, life) in &mut lives {
            let rough = faults.rough(client.number);
            let unnoticed =
                faults.cuts(client.number).into_iter().filter_map(|cut| life.unnoticed(cut, facts.timeout));
            let apart = rough.iter().copied().chain(unnoticed).chain(life.unconnected());
            life.apart = Spans::new(apart.collect());
            life.rough = Spans::new(rough);
            life.short = Spans::new(life.connected_in(&faults.short_timeouts()));
            life.frozen = faults.frozen(client.number);
        }
        lives
    }

    fn note(&mut self, index: usize, event: &Event) {
        let at = event.at;
        match event.kind {
            EventKind::Crashed => self.crashed = Some(at),
            EventKind::Closing => {
                self.closing.get_or_insert(at);
            }
            EventKind::Closed => {
                self.closed.get_or_insert(at);
            }
            EventKind::Connection { state, generation, suspensions, session } => {
                self.links.push(Link { at, index, state, generation, suspensions, session });
            }
            _ => {}
        }
    }

    fn unconnected(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut since = Some(Duration::ZERO);
        for link in &self.links {
            match (link.state == LinkState::Connected, since) {
                (true, Some(from)) => {
                    spans.push(Span { from, until: link.at });
                    since = None;
                }
                (false, None) => since = Some(link.at),
                (true, None) | (false, Some(_)) => {}
            }
        }
        let end = [self.crashed, self.closing].into_iter().flatten().min();
        spans.extend(since.into_iter().chain(end).map(|from| Span { from, until: Duration::MAX }));
        spans
    }

    /// Times at which the client was connected by links that were opened within these spans.
    fn connected_in(&self, taken_up: &Spans) -> Vec<Span> {
        let ends = self.links.iter().skip(1).map(|next| next.at).chain([Duration::MAX]);
        let links = self.links.iter().zip(ends);
        let connected = links.filter(|(link, _)| link.state == LinkState::Connected);
        let those = connected.filter(|(link, _)| taken_up.at(link.at).is_some());
        those.map(|(link, until)| Span { from: link.at, until }).collect()
    }

    /// Time from the end of a cut until the client notices that its link is broken, because bytes were lost.
    fn unnoticed(&self, cut: Span, timeout: Duration) -> Option<Span> {
        let next = self.links.iter().find(|link| link.at >= cut.until)?;
        let is_noticed = next.state != LinkState::Connected && next.at <= cut.until.saturating_add(timeout);
        is_noticed.then_some(Span { from: cut.until, until: next.at })
    }

    /// The session of a generation, if the watcher reported it.
    pub(crate) fn session_of(&self, generation: u64) -> Option<i64> {
        self.links.iter().filter(|link| link.generation == generation).find_map(|link| link.session)
    }

    /// The generation of a session, if the watcher reported it.
    pub(crate) fn generation_of(&self, session: i64) -> Option<u64> {
        self.links.iter().find(|link| link.session == Some(session)).map(|link| link.generation)
    }

    /// The state with which the watcher reported that a generation has ended.
    pub(crate) fn end_of(&self, generation: u64) -> Option<Link> {
        let is_end = |link: &&Link| {
            link.generation > generation
                || link.generation == generation && matches!(link.state, LinkState::Lost | LinkState::Closed)
        };
        self.links.iter().find(is_end).copied()
    }

    /// Number of connection states that were reported between two times.
    pub(crate) fn links_between(&self, from: Duration, until: Option<Duration>) -> usize {
        let upto = |at: Duration| self.links.partition_point(|link| link.at < at);
        until.map_or(self.links.len(), upto).saturating_sub(upto(from))
    }

    /// Time at which the client crashed or began to close.
    pub(crate) fn leaving(&self) -> Option<Duration> {
        [self.crashed, self.closing, self.closed].into_iter().flatten().min()
    }

    /// Time by which a process has acted on a deadline at `due`. A paused process first has to resume.
    pub(crate) fn awake(&self, due: Duration, scheduling: Duration) -> Duration {
        let mut due = due;
        while let Some(frozen) = self.frozen.at(due) {
            if frozen.until == Duration::MAX {
                return Duration::MAX;
            }
            // Step past the end of the span, which still belongs to it.
            due = frozen.until + scheduling.max(Duration::from_nanos(1));
        }
        due
    }
}
