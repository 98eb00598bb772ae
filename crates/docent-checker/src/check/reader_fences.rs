use crate::analysis::Analysis;
use crate::event::{AttemptId, EventKind};
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeMap;

/// **Fences of readers**: a reader that was a writer keeps its fence. Other readers have none.
///
/// M4 checks the fences of writers.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let writers = writers(analysis);
    for trace in analysis.attempts.all().filter(|trace| trace.is_shared()) {
        let is_reader =
            analysis.node_of(trace).is_some_and(|(index, _)| analysis.rw_lines.place(index).is_some());
        let Some((at, grant)) = trace.granted.filter(|_| is_reader) else { continue };
        let writer = writers.get(&trace.id()).copied().flatten();
        if grant.fence != writer {
            let what = format!("a reader's fence is {:?}, but as a writer it was {writer:?}:", grant.fence);
            found.push(
                Violation::new(Invariant::R6, at, what)
                    .attempt(trace.id())
                    .client(trace.client)
                    .path(trace.attempt.path.clone()),
            );
        }
    }
}

/// The fences that readers had as writers.
fn writers(analysis: &Analysis<'_>) -> BTreeMap<AttemptId, Option<u64>> {
    let stepped_down = analysis.events().filter_map(|(_, event)| match &event.kind {
        EventKind::Downgraded { from, to } => Some((*to, *from)),
        _ => None,
    });
    let fence = |id| analysis.attempts.get(id)?.granted?.1.fence;
    stepped_down.map(|(to, from)| (to, fence(from))).collect()
}

#[cfg(test)]
mod tests {
    use crate::history::HistoryBuilder;
    use crate::violation::Invariant::R6;

    #[test]
    fn a_reader_that_was_no_writer_has_no_fence() {
        let mut history = HistoryBuilder::new();
        let reader = history.at(100).read(0);
        history.create(reader).at(110).grant_with(reader, 5).end(300).breaks(R6);
    }
}
