use crate::event::{Event, EventKind, FaultKind};
use crate::run::Facts;
use crate::spans::{Span, Spans};
use std::collections::BTreeMap;
use std::time::Duration;

/// Times at which faults were active, for one client or for all of them.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    windows: Vec<Window>,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    /// Number of the client, because a restarted client is behind the same link; `None` for all clients.
    client: Option<u32>,
    kind: FaultKind,
    span: Span,
}

impl Faults {
    /// Collects the faults. A fault without a recorded end lasts until all faults have ended.
    pub(crate) fn of(events: &[Event], facts: &Facts) -> Self {
        let calm = events.iter().find(|event| event.kind == EventKind::Calm).map(|event| event.at);
        let mut faults = Self::default();
        let mut open: BTreeMap<(Option<u32>, FaultKind), Vec<usize>> = BTreeMap::new();
        for event in events {
            let client = event.client.map(|client| client.number);
            match &event.kind {
                EventKind::Fault(kind) => {
                    let until = match aftermath(*kind, facts) {
                        Some(time) => event.at + time,
                        None => calm.filter(|calm| *calm >= event.at).unwrap_or(Duration::MAX),
                    };
                    open.entry((client, *kind)).or_default().push(faults.windows.len());
                    let span = Span { from: event.at, until };
                    faults.windows.push(Window { client, kind: *kind, span });
                }
                EventKind::Healed(kind) => {
                    if let Some(index) = open.get_mut(&(client, *kind)).and_then(Vec::pop) {
                        faults.windows[index].span.until = event.at;
                    }
                }
                _ => {}
            }
        }
        faults
    }

    /// Times at which a fault affected a client or its link.
    pub(crate) fn rough(&self, client: u32) -> Vec<Span> {
        self.select(Some(client), |kind| aftermath(kind, &Facts::default()) != Some(Duration::ZERO))
    }

    /// Times at which a client's process was paused.
    pub(crate) fn frozen(&self, client: u32) -> Spans {
        Spans::new(self.select(Some(client), |kind| kind == FaultKind::Frozen))
    }

    /// Times at which no server could end a session, because all servers were down or had no majority.
    pub(crate) fn outages(&self) -> Spans {
        Spans::new(self.select(None, |kind| matches!(kind, FaultKind::Bounced | FaultKind::CutOff)))
    }

    /// Times at which servers granted shorter timeouts than clients requested.
    pub(crate) fn short_timeouts(&self) -> Spans {
        Spans::new(self.select(None, |kind| kind == FaultKind::ShortTimeouts))
    }

    /// Times at which frames from or to a client were lost.
    pub(crate) fn cuts(&self, client: u32) -> Vec<Span> {
        let is_cut = |kind| matches!(kind, FaultKind::Cut | FaultKind::CutToServer | FaultKind::CutToClient);
        self.select(Some(client), is_cut)
    }

    fn select(&self, client: Option<u32>, which: impl Fn(FaultKind) -> bool) -> Vec<Span> {
        let concerned =
            |window: &&Window| window.client.is_none() || client.is_some() && window.client == client;
        self.windows
            .iter()
            .filter(concerned)
            .filter(|window| which(window.kind))
            .map(|window| window.span)
            .collect()
    }
}

/// Time for which a fault without a recorded end affects its client; `None` for a lasting fault.
fn aftermath(kind: FaultKind, facts: &Facts) -> Option<Duration> {
    match kind {
        FaultKind::Reset { .. } | FaultKind::Bounced => Some(facts.tolerances.reconnect),
        // The client drops a link on which a reply is overdue.
        FaultKind::Swallowed => Some(facts.timeout),
        FaultKind::Cancelled
        | FaultKind::Expired
        | FaultKind::Denied
        | FaultKind::Deleted
        | FaultKind::Crashed
        | FaultKind::ShortTimeouts => Some(Duration::ZERO),
        FaultKind::Cut
        | FaultKind::CutToServer
        | FaultKind::CutToClient
        | FaultKind::Held
        | FaultKind::Slow
        | FaultKind::Frozen
        | FaultKind::CutOff => None,
    }
}
