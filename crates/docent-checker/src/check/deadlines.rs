use crate::analysis::Analysis;
use crate::event::{CallId, ClientId, EventKind};
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeMap;
use std::time::Duration;

/// **Deadlines**: under any fault, every call returns once, within its deadline and the time for scheduling,
/// unless its future is dropped, or its process is paused or dies.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let mut calls: BTreeMap<CallId, Call> = BTreeMap::new();
    for (_, event) in analysis.events() {
        let (at, Some(client)) = (event.at, event.client) else { continue };
        match &event.kind {
            EventKind::Called { call, operation, within } => {
                let due = at + *within + analysis.tolerances().scheduling;
                calls.insert(*call, Call { client, operation, due, returned: None });
            }
            EventKind::Returned { call, .. } | EventKind::Abandoned(call) => match calls.get_mut(call) {
                Some(Call { returned: returned @ None, .. }) => *returned = Some(at),
                _ => {
                    let what = format!("call {} returned, but was not in progress:", call.0);
                    found.push(Violation::new(Invariant::K2, at, what).client(client));
                }
            },
            _ => {}
        }
    }
    found.extend(calls.into_iter().filter_map(|(id, call)| late(analysis, id, &call)));
}

struct Call {
    client: ClientId,
    operation: &'static str,
    due: Duration,
    returned: Option<Duration>,
}

fn late(analysis: &Analysis<'_>, id: CallId, call: &Call) -> Option<Violation> {
    let life = analysis.life(call.client)?;
    let due = life.awake(call.due, analysis.tolerances().scheduling);
    let what = match call.returned {
        Some(returned) if returned > due => format!("returned {:?} after its deadline", returned - due),
        None if analysis.shows(due) && life.crashed.is_none_or(|crashed| crashed > due) => {
            "never returned".to_owned()
        }
        _ => return None,
    };
    let what = format!("call {}, {}, {what}:", id.0, call.operation);
    Some(Violation::new(Invariant::K2, due, what).client(call.client))
}

#[cfg(test)]
mod tests {
    use crate::event::{CallId, EventKind, FaultKind};
    use crate::history::HistoryBuilder;
    use crate::violation::Invariant::K2;
    use std::time::Duration;

    fn called() -> HistoryBuilder {
        let mut history = HistoryBuilder::new();
        let within = Duration::from_secs(2);
        history.at(100).record(0, EventKind::Called { call: CallId(1), operation: "create", within });
        history
    }

    fn returned() -> EventKind {
        EventKind::Returned { call: CallId(1), outcome: "ok".to_owned() }
    }

    #[test]
    fn a_call_returns_by_its_deadline() {
        called().at(2_150).record(0, returned()).end(9_000).holds();
        called().at(2_300).record(0, returned()).end(9_000).breaks(K2);
        called().end(2_150).holds();
        called().end(9_000).breaks(K2);
    }

    #[test]
    fn a_call_returns_once() {
        called().at(200).record(0, returned()).record(0, returned()).end(9_000).breaks(K2);
        HistoryBuilder::new().record(0, returned()).end(9_000).breaks(K2);
    }

    #[test]
    fn an_abandoned_call_or_crashed_client_need_not_return() {
        called().at(200).record(0, EventKind::Abandoned(CallId(1))).end(9_000).holds();
        called().at(200).record(0, EventKind::Crashed).end(2_500).holds();
    }

    #[test]
    fn a_paused_client_returns_when_it_resumes() {
        let frozen = |at: u64| {
            let mut history = called();
            history.at(1_000).fault(0, FaultKind::Frozen).at(4_000).heal(0, FaultKind::Frozen);
            history.at(at).record(0, returned());
            history.end(9_000)
        };
        frozen(4_050).holds();
        frozen(4_200).breaks(K2);
    }
}
