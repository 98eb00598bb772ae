use crate::analysis::Analysis;
use crate::event::ClientId;
use crate::spans::Span;
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **No candidate drops out silently**: a candidate has a node in its election's line, or is about to create
/// one, until it gives up or is notified of the reason. So a healthy, connected client has as many nodes in
/// the line as it has candidates, shortly after it reconnected or lost a node.
///
/// A candidate whose attempt failed tries again after up to 1.5 s.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for (client, path) in analysis.attempts.clients_and_paths() {
        if analysis.elections.delays().contains_key(path) {
            found.extend(missing(analysis, client, path));
        }
    }
}

/// Longest pause between two attempts of one candidate.
const PAUSE: Duration = Duration::from_millis(1_500);

fn missing(analysis: &Analysis<'_>, client: ClientId, path: &str) -> Option<Violation> {
    let life = analysis.life(client)?;
    let end = [life.leaving(), Some(analysis.facts().end.at)].into_iter().flatten().min()?;
    let moment = analysis.tolerances().reconnect + analysis.tolerances().cleanup + PAUSE;
    deficits(analysis, client, path, end).into_iter().find_map(|Span { from, until }| {
        let due = life.apart.quiet(from, moment)?;
        let what = format!("it has fewer nodes in the line than candidates for {:?}:", until - from);
        (due < until).then(|| Violation::new(Invariant::E6, due, what).client(client).path(path))
    })
}

/// Times at which a client had fewer nodes in a line than candidates there.
fn deficits(analysis: &Analysis<'_>, client: ClientId, path: &str, end: Duration) -> Vec<Span> {
    let mut steps: Vec<(Duration, i64)> = Vec::new();
    for (_, node) in analysis.replay.contenders_in(path) {
        if analysis.client_of(node.owner) == Some(client) {
            steps.push((node.created.at, -1));
            steps.extend(node.deleted.map(|deleted| (deleted.when.at, 1)));
        }
    }
    for trace in analysis.attempts.of_client_at(client, path) {
        // A leader needs its node as long as it claims to lead.
        let deleted =
            analysis.node_of(trace).and_then(|(_, node)| node.deleted).map(|deleted| deleted.when.at);
        let end = match trace.granted {
            Some((granted, _)) => {
                [trace.until(), deleted.map(|deleted| deleted.max(granted))].into_iter().flatten().min()
            }
            None => trace.waited_until(),
        };
        steps.push((trace.began, 1));
        steps.extend(end.map(|end| (end, -1)));
    }
    steps.sort_unstable();
    let mut spans = Vec::new();
    let (mut missing, mut since) = (0, None);
    for (at, step) in steps {
        missing += step;
        match (missing > 0, since) {
            (true, None) => since = Some(at),
            (false, Some(from)) => {
                spans.push(Span { from, until: at.min(end) });
                since = None;
            }
            _ => {}
        }
    }
    spans.extend(since.map(|from| Span { from, until: end }));
    spans.retain(|span| span.from < span.until);
    spans
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, Ending, FaultKind, LinkState};
    use crate::history::{ElectionEvents, HistoryBuilder};
    use crate::journal::EndCause::Forced;
    use crate::violation::Invariant::{E6, M11};

    /// The first candidate leads. The second waits, and its session ends at 1 s.
    fn ended() -> (HistoryBuilder, AttemptId) {
        let mut history = HistoryBuilder::new();
        let (first, second) = (history.at(100).run_at(0, 7), history.run_at(1, 8));
        history.create(first).create(second).at(110).grant(first);
        history.at(1_000).fault(1, FaultKind::Expired).end_session(2, Forced);
        history.at(1_010).link(1, LinkState::Suspended).at(1_020).link(1, LinkState::Lost);
        history.at(1_100).connect(1, 9, 2);
        (history, second)
    }

    #[test]
    fn a_candidate_whose_session_ended_campaigns_again() {
        let (mut history, second) = ended();
        history.at(3_000).create(second).end(9_000).holds();
    }

    #[test]
    fn a_candidate_that_does_not_campaign_again_is_caught() {
        let (mut history, _) = ended();
        history.clone().end(6_000).holds();
        history.end(9_000).breaks(E6);
    }

    #[test]
    fn a_candidate_that_reports_an_error_need_not_campaign_again() {
        let (mut history, second) = ended();
        history.at(2_000).ended(second, Ending::Failed("NoAuth".to_owned())).end(9_000).holds();
    }

    #[test]
    fn a_candidate_that_is_cut_off_need_not_campaign() {
        let (mut history, second) = ended();
        history.at(1_200).fault(1, FaultKind::Cut).at(20_000).heal(1, FaultKind::Cut);
        history.at(21_000).create(second).end(22_000).holds();
    }

    #[test]
    fn a_leader_that_lost_its_term_campaigns_again_too() {
        let mut history = HistoryBuilder::new();
        let term = history.at(100).run_at(0, 7);
        let node = history.create(term).node(term);
        history
            .at(110)
            .grant(term)
            .at(200)
            .fault(0, FaultKind::Deleted)
            .delete_path(&node, 7)
            .at(250)
            .lost(term)
            .dropped(term);
        let again = history.run_at(0, 7);
        history.clone().at(300).create(again).at(310).grant(again).end(9_000).holds();
        history.end(9_000).breaks(E6);
        assert!(!history.broken().contains(&M11));
    }
}
