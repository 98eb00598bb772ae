use crate::analysis::Analysis;
use crate::attempt_trace::AttemptTrace;
use crate::event::Role;
use crate::journal_replay::Moment;
use crate::violation::{Found, Invariant, Violation};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// **Permits**: in the order of transactions there are never more permits than the limit, except for those
/// that were in use when the limit was lowered.
///
/// A node is *admitted* from the first transaction after which it exists and fewer nodes are ahead of it than
/// the limit permits. It stays admitted when the limit changes. An admitted node has only admitted nodes
/// ahead of it, so a newly admitted node never raises the number of admitted nodes above the limit of that
/// moment. A permit is granted on an admitted node.
///
/// Applies to paths whose limits are known.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let mut limits: BTreeMap<&str, Vec<(i64, u32)>> = BTreeMap::new();
    for limit in &analysis.facts().limits {
        limits.entry(&limit.path).or_default().push((limit.zxid, limit.permits));
    }
    for (path, limits) in limits {
        let Some(admitted) = admitted(analysis, path, &limits) else { continue };
        let permits = analysis.attempts.all().filter(|trace| matches!(trace.attempt.role, Role::Permits(_)));
        for trace in permits.filter(|trace| trace.attempt.path == path) {
            found.extend(wrong(analysis, trace, &admitted, &limits));
        }
    }
}

fn wrong(
    analysis: &Analysis<'_>,
    trace: &AttemptTrace<'_>,
    admitted: &HashMap<usize, Moment>,
    limits: &[(i64, u32)],
) -> Option<Violation> {
    let (at, _) = trace.granted?;
    let (index, node) = analysis.node_of(trace)?;
    let until = at + analysis.tolerances().grain;
    if admitted.get(&index).is_some_and(|admitted| admitted.at <= until) {
        return None;
    }
    let ahead = analysis.replay.contenders_in(&trace.attempt.path).filter(|(other, one)| {
        *other != index && one.created.zxid < node.created.zxid && one.is_alive_at(until)
    });
    let limit = limits.iter().rev().find(|(zxid, _)| *zxid <= node.created.zxid).or(limits.first())?;
    let what = format!(
        "a permit was granted with {} nodes ahead of it, beyond the limit, which was {} at its creation:",
        ahead.count(),
        limit.1
    );
    Some(
        Violation::new(Invariant::S1, at, what)
            .attempt(trace.id())
            .client(trace.client)
            .path(trace.attempt.path.clone()),
    )
}

/// Moment since which each node is admitted; `None` if numbers give no order.
fn admitted(analysis: &Analysis<'_>, path: &str, limits: &[(i64, u32)]) -> Option<HashMap<usize, Moment>> {
    let mut steps: Vec<(i64, Step)> =
        limits.iter().map(|(zxid, limit)| (*zxid, Step::Limit(*limit))).collect();
    let mut now = Moment { zxid: 0, at: std::time::Duration::ZERO };
    for (index, node) in analysis.replay.contenders_in(path) {
        let contender = node.contender.as_ref().filter(|contender| !contender.is_in_danger_zone())?;
        let place = (contender.number, index);
        steps.push((node.created.zxid, Step::Comes(place, node.created)));
        steps.extend(node.deleted.map(|deleted| (deleted.when.zxid, Step::Goes(place, deleted.when))));
    }
    steps.sort_by_key(|(zxid, _)| *zxid);
    let (mut limit, mut alive, mut admitted) = (0, BTreeSet::new(), HashMap::new());
    for transaction in steps.chunk_by(|one, other| one.0 == other.0) {
        for (_, step) in transaction {
            match *step {
                Step::Limit(permits) => limit = permits as usize,
                Step::Comes(place, at) => {
                    alive.insert(place);
                    now = at;
                }
                Step::Goes(place, at) => {
                    alive.remove(&place);
                    now = at;
                }
            }
        }
        // A change of the limit has no time here, so its nodes count from the previous change of the line.
        // Between the two, only the notification of the new limit can lead to a grant.
        for (_, index) in alive.iter().take(limit) {
            admitted.entry(*index).or_insert(now);
        }
    }
    Some(admitted)
}

#[derive(Clone, Copy)]
enum Step {
    Limit(u32),
    Comes((i32, usize), Moment),
    Goes((i32, usize), Moment),
}

#[cfg(test)]
mod tests {
    use crate::event::AttemptId;
    use crate::history::{HistoryBuilder, LOCK};
    use crate::run::Limit;
    use crate::violation::Invariant::S1;

    fn limited(limits: &[(i64, u32)]) -> (HistoryBuilder, [AttemptId; 3]) {
        let mut history = HistoryBuilder::new();
        let limit =
            |(zxid, permits): &(i64, u32)| Limit { path: LOCK.to_owned(), zxid: *zxid, permits: *permits };
        history.run.facts.limits = limits.iter().map(limit).collect();
        let all = [0, 1, 2].map(|client| history.at(100).permit(client, 1));
        for attempt in all {
            // Transactions 5, 6 and 7.
            history.create(attempt);
        }
        history.at(110).grant_plain(all[0]).grant_plain(all[1]);
        (history, all)
    }

    #[test]
    fn permits_up_to_the_limit_are_right() {
        let (mut history, all) = limited(&[(0, 2)]);
        history.at(200).releasing(all[0]).delete(all[0]).at(203).grant_plain(all[2]).end(300).holds();
    }

    #[test]
    fn a_permit_above_the_limit_is_caught() {
        let (mut history, all) = limited(&[(0, 2)]);
        history.at(200).grant_plain(all[2]).end(300).breaks(S1);
    }

    #[test]
    fn granted_permits_remain_valid_when_the_limit_is_lowered() {
        let (mut history, all) = limited(&[(0, 2), (8, 1)]);
        history.at(150).pass();
        history.clone().end(300).holds();
        // One permit is returned, and is not available to others now.
        history.at(200).releasing(all[0]).delete(all[0]);
        history.clone().end(300).holds();
        history.at(203).grant_plain(all[2]).end(300).breaks(S1);
    }

    #[test]
    fn a_higher_limit_allows_more_permits() {
        let (mut history, all) = limited(&[(0, 2), (8, 3)]);
        history.at(150).pass().at(153).grant_plain(all[2]).end(300).holds();
    }
}
