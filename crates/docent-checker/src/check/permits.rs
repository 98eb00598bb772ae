use crate::analysis::Analysis;
use crate::attempt_trace::AttemptTrace;
use crate::event::Role;
use crate::journal_replay::Moment;
use crate::violation::{Found, Invariant, Violation};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// **Permits**: in the order of transactions there are never more permits than the limit, but for those that
/// were out when it was lowered.
///
/// A node is *in* from the first transaction on after which it is there and fewer nodes are ahead of it than
/// the limit is then; it stays in when the limit changes. So a node that comes in makes the number of nodes
/// that are in not higher than the limit of that moment: all of them are ahead of it, as a node that is in
/// has only such ahead. A permit is granted by a node that is in.
///
/// Asked of paths whose limits are known.
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
        "a permit was granted with {} ahead of it, and never came into the limit, which was {} when it came:",
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

/// Moment since when each node is in; `None` where numbers tell no order.
fn admitted(analysis: &Analysis<'_>, path: &str, limits: &[(i64, u32)]) -> Option<HashMap<usize, Moment>> {
    let mut steps: Vec<(i64, Step)> =
        limits.iter().map(|(zxid, limit)| (*zxid, Step::Limit(*limit))).collect();
    let mut now = Moment { zxid: 0, at: std::time::Duration::ZERO };
    for (index, node) in analysis.replay.contenders_in(path) {
        let contender = node.contender.as_ref().filter(|contender| !contender.is_in_danger_zone())?;
        let place = (contender.number, index);
        steps.push((node.created.zxid, Step::Comes(place, node.created)));
        steps.extend(node.gone.map(|gone| (gone.when.zxid, Step::Goes(place, gone.when))));
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
        // A change of the limit has no time of its own here: nobody is granted by it before anything else
        // happens, but news.
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
    fn as_many_as_the_limit_says() {
        let (mut history, all) = limited(&[(0, 2)]);
        history.at(200).releasing(all[0]).delete(all[0]).at(203).grant_plain(all[2]).end(300).holds();
    }

    #[test]
    fn one_more_is_caught() {
        let (mut history, all) = limited(&[(0, 2)]);
        history.at(200).grant_plain(all[2]).end(300).breaks(S1);
    }

    #[test]
    fn what_is_out_stays_out_when_the_limit_is_lowered() {
        let (mut history, all) = limited(&[(0, 2), (8, 1)]);
        history.at(150).pass();
        history.clone().end(300).holds();
        // One is given back, and there is no other for it now.
        history.at(200).releasing(all[0]).delete(all[0]);
        history.clone().end(300).holds();
        history.at(203).grant_plain(all[2]).end(300).breaks(S1);
    }

    #[test]
    fn a_higher_limit_lets_more_in() {
        let (mut history, all) = limited(&[(0, 2), (8, 3)]);
        history.at(150).pass().at(153).grant_plain(all[2]).end(300).holds();
    }
}
